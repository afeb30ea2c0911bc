// What is known of one job, asked again and again while its page is in view.

import { Client, IJobName } from '../../console/data/client';
import { ApiError } from '../../console/data/errors';
import { IDisposable, Polled, Signal } from '../../console/data/store';
import { AttemptInfo, JobDetail } from '../../console/generated/types.gen';

/** ms between two questions. */
const INTERVAL = 2_000;

/** A job with all its attempts, the oldest first. These are without their tasks: the job has those of the last one. */
export interface IKnownJob {
  readonly detail: JobDetail;
  readonly attempts: readonly AttemptInfo[];
  /** When that was so (ms since the epoch). */
  readonly time: number;
}

export class JobModel implements IDisposable {
  constructor(
    readonly client: Client,
    readonly name: IJobName
  ) {
    this.polled = new Polled(() => this.ask(), INTERVAL);
    this.polled.changed.connect(() => this.changed.emit());
  }

  /** `null` until the first answer. */
  get known(): IKnownJob | null {
    return this.polled.answer;
  }

  /** Why the last question had no answer; empty when it had one. */
  get error(): string {
    return this.polled.error;
  }

  /** Whether there is no such job (any more). */
  get gone(): boolean {
    return this._gone && this.polled.error !== '';
  }

  get ended(): boolean {
    const state = this.known?.detail.jobStatus.state;
    return state !== undefined && state !== 'WAITING' && state !== 'RUNNING';
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.polled.isDisposed;
  }

  async refresh(): Promise<void> {
    await this.polled.refresh();
  }

  /** Ask for what a page that is about to be opened shows first: the answer is on its way while the page is made. */
  begin(): void {
    this.begun ??= this.askFirst();
    this.begun.catch(() => undefined); // who waits for it is told
  }

  setShown(shown: boolean): void {
    this.polled.setShown(shown);
  }

  dispose(): void {
    this.polled.dispose();
    this.changed.clear();
  }

  private async ask(): Promise<IKnownJob> {
    try {
      const { known } = this;
      if (known === null) {
        const begun = this.begun ?? this.askFirst();
        this.begun = null;
        return await begun;
      }
      const detail = await this.client.detail(this.name);
      // where nothing has changed since they were asked for, there are no others
      const attempts = detail === known.detail && this.certain ? known.attempts : await this.client.attempts(this.name);
      this.certain = true;
      return { detail, attempts, time: Date.now() };
    } catch (error) {
      this._gone = error instanceof ApiError && error.status === 404;
      throw error;
    }
  }

  /** Ask for both at once: somebody has just opened the page. */
  private async askFirst(): Promise<IKnownJob> {
    const [detail, attempts] = await Promise.all([this.client.detail(this.name), this.client.attempts(this.name)]);
    return { detail, attempts, time: Date.now() };
  }

  private begun: Promise<IKnownJob> | null = null;
  private readonly polled: Polled<IKnownJob>;
  private _gone = false;
  /** Whether the attempts were asked for after the job: they may be older otherwise. */
  private certain = false;
}
