import { describe, expect, it } from 'vitest';

import { IJob } from '../console/data/client';
import { ApiError } from '../console/data/errors';
import { NEWEST, OwnJobs } from '../console/data/jobs';
import { detail, job, jobStatus } from './notebookServer';

/** A scheduler with jobs, newest first, that notes what it is asked. */
class Played {
  asked: string[] = [];

  constructor(public all: IJob[]) {}

  async jobs(_user: string, { limit, state, after }: { limit: number; state?: string; after?: string }) {
    const start = after ? Number(after) : 0;
    this.asked.push(`${state ?? 'all'} ${limit} from ${start}`);
    const found = this.all.filter(each => !state || state.split(',').includes(each.state));
    const end = start + limit;
    return { jobs: found.slice(start, end), next: end < found.length ? String(end) : null };
  }

  async detail({ name }: IJob) {
    this.asked.push(`detail ${name}`);
    const found = this.all.find(each => each.name === name);
    if (!found) {
      throw new ApiError(404, 'NoJobError', 'There is no such job.');
    }
    const { state, subState, completedTime, appExitCode } = found;
    return detail({ jobStatus: jobStatus({ state, subState, completedTime, appExitCode }) });
  }

  /** Change a job. */
  change(name: string, changes: Partial<IJob>): void {
    this.all = this.all.map(each => (each.name === name ? { ...each, ...changes } : each));
  }
}

/** Make so many jobs, newest first, of which the oldest runs. */
function many(count: number): IJob[] {
  return Array.from({ length: count }, (_, index) =>
    job({
      name: `job-${count - index}`,
      createdTime: (count - index) * 1000,
      state: index === count - 1 ? 'RUNNING' : 'SUCCEEDED'
    })
  );
}

describe('the jobs of a person', () => {
  it('take one short answer where there are few', async () => {
    const played = new Played(many(NEWEST));
    const own = new OwnJobs(played, 'alice', () => undefined);
    await own.follow(true);
    expect(own.jobs).toEqual(played.all);
    expect(own.whole).toBe(true);
    expect(played.asked).toEqual([`all ${NEWEST} from 0`]);
  });

  it('are read whole once, when somebody looks, and then only what may change', async () => {
    const played = new Played(many(2500));
    const lengths: number[] = [];
    const own: OwnJobs = new OwnJobs(played, 'alice', () => lengths.push(own.jobs.length));
    await own.follow(false);
    expect(own.whole).toBe(false);
    expect(own.jobs).toHaveLength(NEWEST + 1); // the one that runs is old
    await own.follow(true);
    expect(own.jobs).toEqual(played.all);
    expect(own.whole).toBe(true);
    expect(lengths).toEqual([1001, 2001, 2500]);
    played.asked = [];
    await own.follow(true);
    expect(played.asked).toEqual([`all ${NEWEST} from 0`, 'WAITING,RUNNING 1000 from 0']);
  });

  it('that ended are asked about one by one', async () => {
    const played = new Played(many(500));
    const own = new OwnJobs(played, 'alice', () => undefined);
    await own.follow(true);
    played.change('job-1', { state: 'FAILED', appExitCode: 137, completedTime: 9 });
    await own.follow(true);
    expect(own.jobs[499]).toMatchObject({ name: 'job-1', state: 'FAILED', appExitCode: 137 });
    expect(played.asked).toContain('detail job-1');
    played.asked = [];
    await own.follow(true);
    expect(played.asked).not.toContain('detail job-1');
  });

  it('that were deleted elsewhere go', async () => {
    const played = new Played(many(500));
    const own = new OwnJobs(played, 'alice', () => undefined);
    await own.follow(true);
    played.all = played.all.filter(({ name }) => name !== 'job-1' && name !== 'job-490');
    await own.follow(true);
    expect(own.jobs).toEqual(played.all);
  });

  it('that were submitted since come first', async () => {
    const played = new Played(many(500));
    const own = new OwnJobs(played, 'alice', () => undefined);
    await own.follow(true);
    played.all = [job({ name: 'new', createdTime: 600_000 }), ...played.all];
    await own.follow(true);
    expect(own.jobs).toEqual(played.all);
  });

  it('stay the same objects while nothing changes, so that nothing is drawn again', async () => {
    const played = new Played(many(500));
    const own = new OwnJobs(played, 'alice', () => undefined);
    await own.follow(true);
    const before = own.jobs;
    played.all = played.all.map(each => ({ ...each }));
    await own.follow(true);
    expect(own.jobs).toBe(before);
    played.change('job-1', { state: 'SUCCEEDED' });
    await own.follow(true);
    expect(own.jobs).not.toBe(before);
    expect(own.jobs[0]).toBe(before[0]);
  });

  it('are read whole again where many have ended at once', async () => {
    const all = many(500).map((each, index) => (index > 450 ? { ...each, state: 'RUNNING' as const } : each));
    const played = new Played(all);
    const own = new OwnJobs(played, 'alice', () => undefined);
    await own.follow(true);
    played.all = all.map(each => ({ ...each, state: 'STOPPED' as const }));
    played.asked = [];
    await own.follow(true);
    expect(own.jobs.every(({ state }) => state === 'STOPPED')).toBe(true);
    expect(played.asked.some(asked => asked.startsWith('detail'))).toBe(false);
  });
});
