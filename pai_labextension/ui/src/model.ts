// The person's jobs as last heard, asked again and again, less often while nobody answers or nobody looks.

import { Token } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { Api, IJob } from './api';
import { key, waiting } from './jobs';

/** ms between two questions, and at most after failed ones. */
const INTERVAL = 5_000;
const MAX_INTERVAL = 120_000;
/** For how many waiting jobs to ask why, each a request: with the list in view, and for the tooltip alone. */
const REASONS_IN_LIST = 20;
const REASONS_IN_TOOLTIP = 1;

/** What the status bar and the list show. */
export interface IJobsModel extends IDisposable {
  /** Newest first; `null` until the first answer. */
  readonly jobs: readonly IJob[] | null;
  /** Why the last question had no answer; empty when it had one. */
  readonly error: string;
  readonly changed: ISignal<IJobsModel, void>;
  /** Return whether a job is the notebook server in front of which the person sits. */
  isOwnServer(job: Pick<IJob, 'name'>): boolean;
  /** Why a waiting job waits; `undefined` where that is not known (yet). */
  reason(job: IJob): string | undefined;
  /** Ask now; resolves when answered. */
  refresh(): Promise<void>;
  /** Stop a job and ask again. */
  stop(job: IJob): Promise<void>;
  /** Note that a list of jobs came into view, or went. */
  setListed(listed: boolean): void;
}

export const IJobsModel = new Token<IJobsModel>(
  'pai-labextension:IJobsModel',
  'The jobs of the person in front of it.'
);

export class JobsModel implements IJobsModel {
  /** @param ownServer - the name of the job that this notebook server is; empty where it is none */
  constructor(
    private readonly api: Api,
    private readonly ownServer = ''
  ) {
    this.poll = new Poll({
      name: 'pai-labextension:jobs',
      factory: () => this.ask(),
      frequency: { interval: INTERVAL, backoff: true, max: MAX_INTERVAL },
      standby: 'when-hidden'
    });
  }

  get jobs(): readonly IJob[] | null {
    return this._jobs;
  }

  get error(): string {
    return this._error;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  isOwnServer(job: Pick<IJob, 'name'>): boolean {
    return this.ownServer !== '' && job.name === this.ownServer;
  }

  reason(job: IJob): string | undefined {
    return this.reasons.get(key(job));
  }

  async refresh(): Promise<void> {
    await this.poll.refresh();
    await this.poll.tick;
  }

  async stop(job: IJob): Promise<void> {
    await this.api.stop(job);
    await this.refresh();
  }

  setListed(listed: boolean): void {
    this.listed = listed;
    if (listed) {
      void this.poll.refresh();
    }
  }

  dispose(): void {
    this.poll.dispose();
    Signal.clearData(this);
  }

  private async ask(): Promise<void> {
    try {
      this.user ??= (await this.api.whoami()).username;
      const jobs = await this.api.jobs(this.user);
      this.reasons = await this.askReasons(jobs);
      this._jobs = jobs;
      this._error = '';
    } catch (error) {
      this._error = error instanceof Error ? error.message : String(error);
      throw error; // the poll then asks less often
    } finally {
      if (!this.isDisposed) {
        this._changed.emit();
      }
    }
  }

  private async askReasons(jobs: readonly IJob[]): Promise<Map<string, string>> {
    const asked = waiting(jobs).slice(0, this.listed ? REASONS_IN_LIST : REASONS_IN_TOOLTIP);
    const answers = await Promise.allSettled(asked.map(job => this.api.waitingReason(job)));
    const reasons = new Map<string, string>();
    answers.forEach((answer, index) => {
      const job = asked[index];
      // a job that was deleted since has no reason any more
      if (job && answer.status === 'fulfilled' && answer.value) {
        reasons.set(key(job), answer.value);
      }
    });
    return reasons;
  }

  private readonly poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _jobs: readonly IJob[] | null = null;
  private _error = '';
  private user: string | undefined;
  private reasons = new Map<string, string>();
  private listed = false;
}
