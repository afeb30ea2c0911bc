// The queues of the virtual clusters as last heard, and moving jobs in them.

import { Client, IQueueEntry, IUser } from '../../console/data/client';
import { Polled } from '../../console/data/store';

/** What a person may do with a waiting job. Places count from 1; `undefined`: there is no such move. */
export interface IMoves {
  readonly up: number | undefined;
  readonly down: number | undefined;
}

/** By virtual cluster, first come first. */
export type Queues = Readonly<Record<string, readonly IQueueEntry[]>>;

/** What the view of the queues shows. */
export class QueueModel extends Polled<Queues> {
  constructor(private readonly api: Client) {
    super(async () => {
      this.user ??= await api.whoami();
      return api.queue();
    });
  }

  /** Why the last question had no answer, or what was asked for was refused; empty otherwise. */
  get error(): string {
    return this.refusal || super.error;
  }

  /** Return whether the person may move a job and change its priority. */
  mayChange(entry: IQueueEntry): boolean {
    return entry.name !== null && this.user !== undefined && (this.user.admin || entry.user === this.user.username);
  }

  /** Find where a job can be moved by one. */
  moves(virtualCluster: string, entry: IQueueEntry): IMoves {
    if (!this.mayChange(entry)) {
      return { up: undefined, down: undefined };
    }
    // a place counts among the jobs of one priority that this person may move
    const among = (this.answer?.[virtualCluster] ?? []).filter(
      other => other.priority === entry.priority && this.mayChange(other)
    );
    const place = among.indexOf(entry) + 1;
    return { up: place > 1 ? place - 1 : undefined, down: place < among.length ? place + 1 : undefined };
  }

  /** Change a job's place or priority and ask again; return whether that was done. */
  async change(entry: IQueueEntry, to: { place: number } | { priority: number }): Promise<boolean> {
    if (entry.name === null) {
      return false;
    }
    this.refusal = '';
    try {
      await this.api.reorder({ username: entry.user, name: entry.name }, to);
    } catch (error) {
      this.refusal = error instanceof Error ? error.message : String(error);
    }
    const done = this.refusal === '';
    await this.refresh();
    return done;
  }

  setShown(shown: boolean): void {
    if (shown) {
      this.refusal = '';
    }
    super.setShown(shown);
  }

  private refusal = '';
  private user: IUser | undefined;
}
