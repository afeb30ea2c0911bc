import { describe, expect, it } from 'vitest';

import { IJob } from '../../../console/data/client';
import { IJobsModel } from '../../../console/data/jobs';
import { IHost, Place } from '../../../console/host';
import { Ending } from '../../../console/jobs/ending';
import { IEntry } from '../../../console/kit/menu';
import { entriesOf, entriesOfMany } from '../../../console/jobs/page';
import { job, trans } from '../../notebookServer';

const ended: [string[], Ending][] = [];
const onEnd = (jobs: readonly IJob[], ending: Ending) => void ended.push([jobs.map(({ name }) => name), ending]);
const opened: Place[] = [];
const host = { trans, places: { open: (place: Place) => opened.push(place), has: () => true } } as unknown as IHost;
const model = { isOwnServer: ({ name }: IJob) => name === 'notebook_1' } as unknown as IJobsModel;
const labels = (groups: IEntry[][]) => groups.flat().map(({ label }) => label);

describe('the menu of a job', () => {
  it('offers what can be done with it as it is', () => {
    const of = (changes: Partial<IJob>) => labels(entriesOf(job(changes), model, onEnd, host));
    expect(of({ state: 'RUNNING' })).toEqual([
      ...['Open', 'Terminal', 'Connect', 'Run again', 'Clone and edit', 'Stop …', 'Delete …']
    ]);
    expect(of({ state: 'RUNNING', subState: 'ENDING' })).toEqual([
      ...['Open', 'Run again', 'Clone and edit', 'Kill now …', 'Delete …']
    ]);
    expect(of({ state: 'WAITING' })).toEqual(['Open', 'Run again', 'Clone and edit', 'Stop …', 'Delete …']);
    expect(of({ state: 'FAILED' })).toEqual(['Open', 'Run again', 'Clone and edit', 'Delete …']);
    expect(of({ name: 'notebook_1' })).toEqual(['Open', 'Terminal', 'Connect', 'Stop …', 'Delete …']);
  });

  it('leads to places of that job', () => {
    const one = job({ state: 'RUNNING' });
    const entries = entriesOf(one, model, onEnd, host).flat();
    for (const label of ['Open', 'Terminal', 'Connect', 'Clone and edit']) {
      entries.find(entry => entry.label === label)!.act();
    }
    expect(opened).toEqual([
      { page: 'job', job: one },
      { page: 'terminal', job: one },
      { page: 'connect', job: one },
      { page: 'submit', from: one }
    ]);
  });

  it('is about all that are chosen, and stops those of them that have not ended', () => {
    const jobs = [job({ name: 'a' }), job({ name: 'b', state: 'FAILED' }), job({ name: 'c', state: 'WAITING' })];
    const groups = entriesOfMany(jobs, onEnd, host);
    expect(labels(groups)).toEqual(['Stop 2 jobs …', 'Delete 3 jobs …']);
    groups.flat().forEach(({ act }) => act());
    expect(ended).toEqual([
      [['a', 'c'], 'stop'],
      [['a', 'b', 'c'], 'delete']
    ]);
  });
});
