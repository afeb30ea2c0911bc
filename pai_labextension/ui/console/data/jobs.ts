// The person's jobs: how they are, followed so that a long list costs little, stopped and deleted.

import { Client, IJob, JobState, IWait } from './client';
import { ApiError } from './errors';
import { clusterChanges, fewAtOnce, IDisposable, ISignal, jobEvents, Poll, Signal } from './store';

/** A job, and how it is. */
export type IJobState = Pick<IJob, 'name' | 'username' | 'state' | 'subState'>;

/** Return whether a job is not over yet. */
export function isActive(job: IJobState): boolean {
  return job.state === 'WAITING' || job.state === 'RUNNING';
}

/** Return whether the tasks of a job are being stopped, and have some time left to end by themselves. */
export function isEnding(job: Pick<IJob, 'subState'>): boolean {
  return job.subState === 'ENDING';
}

/** Return whether one can go into a job: its tasks run, and are not being stopped. */
export function isOpen(job: Pick<IJob, 'state' | 'subState'>): boolean {
  return job.state === 'RUNNING' && !isEnding(job);
}

/** Count the jobs in a state. */
export function count(jobs: readonly IJob[], state: JobState): number {
  return jobs.filter(job => job.state === state).length;
}

/** Return the waiting jobs, the one that has waited longest first. */
export function waiting(jobs: readonly IJob[]): IJob[] {
  return jobs.filter(job => job.state === 'WAITING').sort((a, b) => a.createdTime - b.createdTime);
}

/** Name a job for good: two users may have jobs of one name. */
export function key(job: Pick<IJob, 'name' | 'username'>): string {
  return `${job.username}~${job.name}`;
}

// A person's jobs, followed so that a long list costs little: read whole once, from then on what may have changed.

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

// The person's jobs as last heard, asked again and again, less often while nobody answers or nobody looks.

/** ms between two questions, and at most after failed ones. A list of many answers is asked for less often. */
const INTERVAL = 5_000;
const MAX_INTERVAL = 30_000;
/** ms between two that are asked because something has happened. */
const PAUSE = 1_000;
/** For how many waiting jobs in view to ask why, each a request. */
const REASONS = 20;
/** How many requests that end jobs are under way at once, and how many that ask why jobs wait. */
const AT_ONCE = 8;
const REASONS_AT_ONCE = 2;

/** A job that was not stopped or deleted, and why. */
export interface IRefusal {
  readonly job: IJobState;
  readonly message: string;
}

/** What the status bar and the list show. */
export interface IJobsModel extends IDisposable {
  /** Newest first; `null` until the first answer. All that have not ended, and others. */
  readonly jobs: readonly IJob[] | null;
  /** Whether these are all jobs; those that ended long ago come when a list is in view. */
  readonly whole: boolean;
  /** Why the last question had no answer; empty when it had one. */
  readonly error: string;
  readonly changed: ISignal;
  /** Return whether a job is the notebook server in front of which the person sits. */
  isOwnServer(job: Pick<IJob, 'name'>): boolean;
  /** Whether this page has stopped the job, so that its stop is no news. */
  isStoppedHere(job: IJobState): boolean;
  /** Why a waiting job waits; `undefined` where that is not known (yet). */
  reason(job: IJob): string | undefined;
  /** Whether it is known that a waiting job cannot start at present, whatever ends. */
  neverFits(job: IJob): boolean;
  /** Ask now; resolves when answered. */
  refresh(): Promise<void>;
  /** Stop jobs (`force`: kill their tasks at once) and ask again; give those that were not stopped. */
  stop(jobs: readonly IJobState[], force?: boolean): Promise<IRefusal[]>;
  /** Delete jobs with their logs and ask again; give those that were not deleted. */
  delete(jobs: readonly IJobState[]): Promise<IRefusal[]>;
  /** Note that a list of jobs came into view, or went. */
  setShown(shown: boolean): void;
  /** Note whether the ends of jobs are to be heard of while the page is hidden, too. */
  setHeardHidden(heard: boolean): void;
  /** Note which jobs are in view: of these it is asked why they wait. */
  see(jobs: readonly IJob[]): void;
}

export class JobsModel implements IJobsModel {
  /**
   * @param ownServer - the name of the job that this notebook server is; empty where it is none
   * @param user - whose jobs; empty: everybody's; absent: the person's own
   */
  constructor(
    private readonly api: Client,
    private readonly ownServer = '',
    private user?: string
  ) {
    this.poll = new Poll(() => this.ask(), {
      interval: INTERVAL,
      max: MAX_INTERVAL,
      // who is told outside of the page hears of the jobs that have not ended
      hidden: () => this.heardHidden && (this._jobs?.some(isActive) ?? true),
      followed: () => this.followed()
    });
    this.poll.start();
  }

  get jobs(): readonly IJob[] | null {
    return this._jobs;
  }

  get whole(): boolean {
    return this.own?.whole ?? false;
  }

  get error(): string {
    return this._error;
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  isOwnServer(job: Pick<IJob, 'name'>): boolean {
    return this.ownServer !== '' && job.name === this.ownServer;
  }

  isStoppedHere(job: IJobState): boolean {
    return this.stoppedHere.has(key(job));
  }

  reason(job: IJob): string | undefined {
    return this.waits.get(key(job))?.reason;
  }

  neverFits(job: IJob): boolean {
    return this.waits.get(key(job))?.neverFits ?? false;
  }

  refresh(): Promise<void> {
    return this.poll.refresh();
  }

  async stop(jobs: readonly IJobState[], force = false): Promise<IRefusal[]> {
    return this.end(jobs, async job => {
      // noted first: the job may be seen stopped before the call is answered
      this.stoppedHere.add(key(job));
      try {
        await this.api.stop(job, force);
      } catch (error) {
        this.stoppedHere.delete(key(job));
        throw error;
      }
    });
  }

  async delete(jobs: readonly IJobState[]): Promise<IRefusal[]> {
    return this.end(jobs, async job => {
      await this.api.delete(job);
      this.own?.forget(job);
      // its name is free for another job
      this.stoppedHere.delete(key(job));
    });
  }

  setShown(shown: boolean): void {
    this.listed = shown;
    if (shown) {
      void this.poll.refresh();
    }
  }

  setHeardHidden(heard: boolean): void {
    this.heardHidden = heard;
  }

  see(jobs: readonly IJob[]): void {
    this.seen = jobs.filter(job => job.state === 'WAITING').slice(0, REASONS);
    if (this.seen.some(job => !this.answered.has(key(job)))) {
      void this.askReasons(false).then(() => this.emit());
    }
  }

  dispose(): void {
    this.poll.dispose();
    this.changed.clear();
  }

  /** Return what may change them: what happens to them, and while some wait all that others do. */
  private followed() {
    // (what happens to everybody's jobs is not told)
    if (!this.user) {
      return [];
    }
    const pages = this.own?.pages ?? 1;
    return [
      ...jobEvents(this.api, this.user, pages > 1 ? INTERVAL * pages : PAUSE),
      ...(this._jobs?.some(job => job.state === 'WAITING') ? clusterChanges(this.api) : [])
    ];
  }

  private async ask(): Promise<void> {
    try {
      this.user ??= (await this.api.whoami()).username;
      this.own ??= new OwnJobs(this.api, this.user, () => this.take());
      await this.own.follow(this.listed);
      this.poll.interval = INTERVAL * this.own.pages;
      this._error = '';
      this.take();
      await this.askReasons(true);
      this.emit();
    } catch (error) {
      this._error = error instanceof Error ? error.message : String(error);
      this.emit();
      throw error; // the poll then asks less often
    }
  }

  private take(): void {
    this._jobs = this.own?.jobs ?? null;
    this.emit();
  }

  private emit(): void {
    if (!this.isDisposed) {
      this.changed.emit();
    }
  }

  /**
   * Ask why the first job waits, which the tooltip says, and those in view.
   *
   * @param again - those too of which it is known: it may have changed
   */
  private async askReasons(again: boolean): Promise<void> {
    const first = waiting(this.own?.jobs ?? []).slice(0, 1);
    const jobs = this.listed ? [...first, ...this.seen] : first;
    const wanted = new Map(jobs.map(job => [key(job), job]));
    // what is out of view is asked again when it comes back; until then it waits for what it waited for
    this.answered.forEach(name => wanted.has(name) || this.answered.delete(name));
    const all = new Set(waiting(this.own?.jobs ?? []).map(key));
    for (const name of this.waits.keys()) {
      if (!all.has(name)) {
        this.waits.delete(name);
      }
    }
    this.turn += 1;
    const { turn } = this;
    const left = [...wanted].filter(([name]) => again || !this.answered.has(name));
    await fewAtOnce(left, REASONS_AT_ONCE, async ([name, job]) => {
      // others have come into view: whoever asks for these asks for what is left, too
      if (turn !== this.turn) {
        return;
      }
      // a job that was deleted since has no reason any more
      const wait = await this.api.waitOf(job).catch(() => null);
      this.answered.add(name);
      if (wait?.reason) {
        this.waits.set(name, wait);
      } else {
        this.waits.delete(name);
      }
    });
  }

  /** Do something with each of some jobs, some at once. */
  private async end(jobs: readonly IJobState[], act: (job: IJobState) => Promise<void>): Promise<IRefusal[]> {
    const refused: IRefusal[] = [];
    await fewAtOnce(jobs, AT_ONCE, async job => {
      try {
        await act(job);
      } catch (error) {
        refused.push({ job, message: error instanceof Error ? error.message : String(error) });
      }
    });
    await this.refresh();
    return refused;
  }

  private readonly poll: Poll;
  private _jobs: readonly IJob[] | null = null;
  private _error = '';
  private own: OwnJobs | undefined;
  private readonly stoppedHere = new Set<string>();
  private readonly waits = new Map<string, IWait>();
  /** Jobs of which it was asked. */
  private readonly answered = new Set<string>();
  /** Grows with each round of questions. */
  private turn = 0;
  private seen: readonly IJob[] = [];
  private listed = false;
  private heardHidden = false;
}

/** Return whether a file can run as a job. */
export function canRun(path: string): boolean {
  return /\.(ipynb|py|sh)$/i.test(path);
}
