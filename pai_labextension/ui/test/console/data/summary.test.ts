import { describe, expect, it } from 'vitest';

import { IJob } from '../../../console/data/client';
import { IJobsModel } from '../../../console/data/jobs';
import { explanation, summary } from '../../../console/data/words';
import { job, trans } from '../../notebookServer';

/** What a model knows at one moment. */
function known(jobs: IJob[] | null, error = '', reason?: string): IJobsModel {
  const isOwnServer = (each: IJob) => each.name === 'notebook_1';
  return { jobs, error, isOwnServer, reason: () => reason } as unknown as IJobsModel;
}

describe('the status bar', () => {
  it('counts what runs and what waits', () => {
    const jobs = [job(), job({ name: 'b', state: 'WAITING' }), job({ name: 'c', state: 'WAITING' })];
    expect(summary(known(jobs), trans)).toBe('PAI: 1 running · 2 waiting');
    expect(summary(known([job()]), trans)).toBe('PAI: 1 running');
  });

  it('does not count what is over', () => {
    expect(summary(known([job({ state: 'SUCCEEDED' })]), trans)).toBe('PAI: no active jobs');
  });

  it('does not count the notebook server that the person sits at', () => {
    expect(summary(known([job({ name: 'notebook_1' })]), trans)).toBe('PAI: no active jobs');
  });

  it('tells not knowing yet and not reaching from having none', () => {
    expect(summary(known(null), trans)).toBe('PAI: …');
    expect(summary(known([job()], 'The scheduler does not answer.'), trans)).toBe('PAI: not available');
  });

  it('explains why the first job waits, or why nothing is known', () => {
    const waits = [
      job({ name: 'new', state: 'WAITING', createdTime: 2 }),
      job({ name: 'old', state: 'WAITING', createdTime: 1 })
    ];
    expect(explanation(known(waits, '', 'no free GPU'), trans)).toBe('“old”: no free GPU');
    expect(explanation(known(waits), trans)).toBe('“old” is waiting');
    expect(explanation(known([]), trans)).toBe('Show my PAI jobs');
    expect(explanation(known(null, 'The scheduler does not answer.'), trans)).toBe('The scheduler does not answer.');
  });
});
