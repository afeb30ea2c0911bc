// The queues of the virtual clusters as last heard, and moving jobs in them.

import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { Api, IQueueEntry, IUser } from './api';

/** ms between two questions, and at most after failed ones. */
const INTERVAL = 5_000;
const MAX_INTERVAL = 120_000;

/** What a person may do with a waiting job. Places count from 1; `undefined`: there is no such move. */
export interface IMoves {
  readonly up: number | undefined;
  readonly down: number | undefined;
}

/** What the view of the queues shows. */
export interface IQueueModel extends IDisposable {
  /** By virtual cluster, first come first; `null` until the first answer. */
  readonly queues: Readonly<Record<string, readonly IQueueEntry[]>> | null;
  /** Why the last question had no answer, or what was asked for was refused; empty otherwise. */
  readonly error: string;
  readonly changed: ISignal<IQueueModel, void>;
  /** Return whether the person may move a job and change its priority. */
  mayChange(entry: IQueueEntry): boolean;
  /** Find where a job can be moved by one. */
  moves(virtualCluster: string, entry: IQueueEntry): IMoves;
  /** Ask now; resolves when answered. */
  refresh(): Promise<void>;
  /** Change a job's place or priority and ask again; return whether that was done. */
  change(entry: IQueueEntry, to: { place: number } | { priority: number }): Promise<boolean>;
  /** Note that the queues came into view, or went: nobody is asked while nobody looks. */
  setShown(shown: boolean): void;
}

export class QueueModel implements IQueueModel {
  constructor(private readonly api: Api) {
    this.poll = new Poll({
      name: 'pai-labextension:queue',
      auto: false,
      factory: () => this.ask(),
      frequency: { interval: INTERVAL, backoff: true, max: MAX_INTERVAL },
      standby: 'when-hidden'
    });
  }

  get queues(): Readonly<Record<string, readonly IQueueEntry[]>> | null {
    return this._queues;
  }

  get error(): string {
    return this.refusal || this.trouble;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  mayChange(entry: IQueueEntry): boolean {
    return entry.name !== null && this.user !== undefined && (this.user.admin || entry.user === this.user.username);
  }

  moves(virtualCluster: string, entry: IQueueEntry): IMoves {
    if (!this.mayChange(entry)) {
      return { up: undefined, down: undefined };
    }
    // a place counts among the jobs of one priority that this person may move
    const among = (this._queues?.[virtualCluster] ?? []).filter(
      other => other.priority === entry.priority && this.mayChange(other)
    );
    const place = among.indexOf(entry) + 1;
    return { up: place > 1 ? place - 1 : undefined, down: place < among.length ? place + 1 : undefined };
  }

  async refresh(): Promise<void> {
    await this.poll.refresh();
    await this.poll.tick;
  }

  async change(entry: IQueueEntry, to: { place: number } | { priority: number }): Promise<boolean> {
    if (entry.name === null) {
      return false;
    }
    this.refusal = '';
    try {
      await this.api.reorder(entry.user, entry.name, to);
    } catch (error) {
      this.refusal = text(error);
    }
    const done = this.refusal === '';
    await this.refresh();
    return done;
  }

  setShown(shown: boolean): void {
    if (shown) {
      this.refusal = '';
      void this.poll.start();
    } else {
      void this.poll.stop();
    }
  }

  dispose(): void {
    this.poll.dispose();
    Signal.clearData(this);
  }

  private async ask(): Promise<void> {
    try {
      this.user ??= await this.api.whoami();
      this._queues = await this.api.queue();
      this.trouble = '';
    } catch (error) {
      this.trouble = text(error);
      throw error; // the poll then asks less often
    } finally {
      if (!this.isDisposed) {
        this._changed.emit();
      }
    }
  }

  private readonly poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _queues: Readonly<Record<string, readonly IQueueEntry[]>> | null = null;
  private trouble = '';
  private refusal = '';
  private user: IUser | undefined;
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
