// A person's jobs, followed so that a long list costs little: read whole once, from then on what may have changed.

import { Client, IJob } from '../console/data/client';
import { ApiError } from '../console/data/errors';
import { isActive, key } from './jobs';

/** Of the newest jobs so many are asked for each time: most people have no more, and then that is all. */
export const NEWEST = 100;
/** Jobs of one answer, where there are many: few enough to be read without anybody noticing. */
const PAGE = 1_000;
/** Of how many jobs that have ended each is asked about; where there are more, the whole list is read again. */
const ENDED = 20;
/** ms after which the whole list is read again: what was deleted elsewhere goes then. */
const WHOLE_AGAIN = 300_000;
const ACTIVE = 'WAITING,RUNNING';

/** What is asked of the scheduler. */
export type JobsApi = Pick<Client, 'jobs' | 'detail'>;

export class OwnJobs {
  /** @param progressed - called while a long list is read, when more of it is there */
  constructor(
    private readonly api: JobsApi,
    private readonly user: string,
    private readonly progressed: () => void
  ) {}

  /** Newest first; the same object as long as nothing has changed. */
  get jobs(): readonly IJob[] {
    return this.sorted;
  }

  /** Whether these are all jobs there are; otherwise all that have not ended, and the newest. */
  get whole(): boolean {
    return this.wholeSince !== null;
  }

  /** How many answers it takes to ask for all that may change. */
  get pages(): number {
    return this.activePages;
  }

  /**
   * Ask what has changed.
   *
   * @param whole - whether all jobs are wanted, those too that ended long ago
   */
  async follow(whole: boolean): Promise<void> {
    const newest = await this.api.jobs(this.user, { limit: NEWEST });
    if (newest.next === null) {
      this.known = new Map();
      this.take(newest.jobs);
      this.activePages = 1;
      this.wholeSince = Date.now();
    } else {
      await this.followMany(newest.jobs, whole);
    }
    this.sort();
  }

  /** Forget a job that was deleted. */
  forget(job: Pick<IJob, 'name' | 'username'>): void {
    this.known.delete(key(job));
    this.sort();
  }

  private async followMany(newest: readonly IJob[], whole: boolean): Promise<void> {
    const active = new Set<string>();
    this.activePages = 0;
    for await (const jobs of this.read({ state: ACTIVE })) {
      this.activePages += 1;
      this.take(jobs);
      jobs.forEach(job => active.add(key(job)));
    }
    this.take(newest);
    const listed = new Set(newest.map(key));
    const oldest = newest[newest.length - 1]!.createdTime;
    for (const [name, job] of this.known) {
      // of that time the answer has all there are
      if (job.createdTime > oldest && !listed.has(name) && !active.has(name)) {
        this.known.delete(name);
      }
    }
    const ended = [...this.known.values()].filter(
      job => isActive(job) && !active.has(key(job)) && !listed.has(key(job))
    );
    if (ended.length > ENDED || (whole && Date.now() - (this.wholeSince ?? 0) > WHOLE_AGAIN)) {
      await this.readWhole();
    } else {
      await Promise.all(ended.map(job => this.askHowItEnded(job)));
    }
  }

  private async readWhole(): Promise<void> {
    const found = new Map<string, IJob>();
    for await (const jobs of this.read({})) {
      this.take(jobs);
      jobs.forEach(job => found.set(key(job), this.known.get(key(job))!));
      if (!this.whole) {
        this.sort();
        this.progressed();
      }
    }
    this.known = found;
    this.wholeSince = Date.now();
  }

  private async askHowItEnded(job: IJob): Promise<void> {
    try {
      const { jobStatus } = await this.api.detail(job);
      const { state, subState, completedTime, appExitCode } = jobStatus;
      this.take([{ ...job, state, subState, completedTime, appExitCode, queuePlace: null }]);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) {
        throw error;
      }
      this.known.delete(key(job));
    }
  }

  /** Read a list page by page. */
  private async *read(parameters: { state?: string }): AsyncGenerator<readonly IJob[]> {
    let after: string | null = '';
    while (after !== null) {
      const page: Awaited<ReturnType<JobsApi['jobs']>> = await this.api.jobs(this.user, {
        ...parameters,
        limit: PAGE,
        ...(after ? { after } : {})
      });
      yield page.jobs;
      after = page.next;
    }
  }

  /** Take jobs as they are now; one that is as it was stays the same object, which need not be drawn again. */
  private take(jobs: readonly IJob[]): void {
    for (const job of jobs) {
      const before = this.known.get(key(job));
      this.known.set(key(job), before && isSame(before, job) ? before : job);
    }
  }

  private sort(): void {
    const jobs = [...this.known.values()].sort((one, other) => other.createdTime - one.createdTime);
    if (jobs.length !== this.sorted.length || jobs.some((job, index) => job !== this.sorted[index])) {
      this.sorted = jobs;
    }
  }

  private known = new Map<string, IJob>();
  private sorted: readonly IJob[] = [];
  private wholeSince: number | null = null;
  private activePages = 1;
}

/** What may change of a job. */
const CHANGING = [
  ...(['state', 'subState', 'createdTime', 'completedTime', 'retries'] as const),
  ...(['appExitCode', 'priority', 'queuePlace', 'virtualCluster'] as const)
];

function isSame(one: IJob, other: IJob): boolean {
  return CHANGING.every(field => one[field] === other[field]);
}
