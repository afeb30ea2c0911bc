import { describe, expect, it } from 'vitest';

import { IJob } from '../../console/data/client';
import { Ending } from '../../console/jobs/ending';
import { IEntry } from '../../console/kit/menu';
import { entriesOf, entriesOfMany } from '../../lab/sidebar/jobEntries';
import { job, trans } from '../notebookServer';

const ended: [string[], Ending][] = [];
const actions = {
  onOpen: () => undefined,
  onTerminal: () => undefined,
  onConnect: () => undefined,
  onRunAgain: () => undefined,
  onClone: () => undefined,
  onEnd: (jobs: readonly IJob[], ending: Ending) => void ended.push([jobs.map(({ name }) => name), ending])
};
const labels = (groups: IEntry[][]) => groups.flat().map(({ label }) => label);

describe('the menu of a job', () => {
  it('offers what can be done with it as it is', () => {
    const of = (changes: Partial<IJob>) => labels(entriesOf(job(changes), false, actions, trans));
    expect(of({ state: 'RUNNING' })).toEqual([
      'Open',
      'Terminal',
      'Connect',
      'Run again',
      'Clone and edit',
      'Stop …',
      'Delete …'
    ]);
    expect(of({ state: 'RUNNING', subState: 'ENDING' })).toEqual([
      'Open',
      'Run again',
      'Clone and edit',
      'Kill now …',
      'Delete …'
    ]);
    expect(of({ state: 'WAITING' })).toEqual(['Open', 'Run again', 'Clone and edit', 'Stop …', 'Delete …']);
    expect(of({ state: 'FAILED' })).toEqual(['Open', 'Run again', 'Clone and edit', 'Delete …']);
    const own = entriesOf(job({ state: 'RUNNING' }), true, actions, trans);
    expect(labels(own)).toEqual(['Open', 'Terminal', 'Connect', 'Stop …', 'Delete …']);
  });

  it('is about all that are chosen, and stops those of them that have not ended', () => {
    const jobs = [job({ name: 'a' }), job({ name: 'b', state: 'FAILED' }), job({ name: 'c', state: 'WAITING' })];
    const groups = entriesOfMany(jobs, actions, trans);
    expect(labels(groups)).toEqual(['Stop 2 jobs …', 'Delete 3 jobs …']);
    groups.flat().forEach(({ act }) => act());
    expect(ended).toEqual([
      [['a', 'c'], 'stop'],
      [['a', 'b', 'c'], 'delete']
    ]);
  });
});
