import { describe, expect, it } from 'vitest';

import { button, endable, title, warning } from '../console/jobs/ending';
import { job, trans } from './notebookServer';

const model = { isOwnServer: ({ name }: { name: string }) => name === 'notebook_1' };

describe('ending jobs', () => {
  it('stops what has not ended, and deletes anything', () => {
    const jobs = [job({ name: 'runs' }), job({ name: 'over', state: 'FAILED' })];
    expect(endable(jobs, 'stop').map(({ name }) => name)).toEqual(['runs']);
    expect(endable(jobs, 'delete')).toHaveLength(2);
  });

  it('kills only what is being stopped, and says what is lost', () => {
    const jobs = [job({ name: 'runs' }), job({ name: 'ends', subState: 'ENDING' })];
    expect(endable(jobs, 'kill').map(({ name }) => name)).toEqual(['ends']);
    expect(title([jobs[1]!], 'kill', trans)).toBe('Kill “ends” now?');
    expect(button([jobs[1]!], 'kill', trans)).toBe('Kill now');
    expect(warning([jobs[1]!], 'kill', model, trans)).toContain('not saved yet is lost');
  });

  it('names those that are meant, and how many more there are', () => {
    const jobs = Array.from({ length: 12 }, (_, index) => job({ name: `job-${index}` }));
    expect(warning(jobs.slice(0, 2), 'stop', model, trans)).toContain('job-0, job-1\n');
    expect(warning(jobs, 'delete', model, trans)).toContain('job-9 and 2 more');
  });

  it('says that the notebook server in front of the person is among them', () => {
    const own = job({ name: 'notebook_1' });
    expect(warning([own], 'stop', model, trans)).toMatch(/^This is the notebook server you are using\./);
    expect(warning([own, job()], 'stop', model, trans)).toContain('“notebook_1” is the notebook server you are using.');
    expect(warning([job()], 'stop', model, trans)).not.toContain('notebook server');
  });

  it('says what becomes of logs', () => {
    expect(warning([job()], 'stop', model, trans)).toContain('Logs are kept.');
    expect(warning([job()], 'delete', model, trans)).toContain(
      'The logs are deleted, too; results in the storage stay.'
    );
  });
});
