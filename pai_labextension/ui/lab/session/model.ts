// How this notebook server's session stands, and how long it may still run by this page's own clock.

import { Client, ISession } from '../../console/data/client';
import { ApiError } from '../../console/data/errors';
import { IDisposable, Polled, Signal } from '../../console/data/store';

/** ms between two questions. */
const EVERY = 15_000;
/** What the Hub answers in the place of a server that does not run. */
const NOT_RUNNING = 424;

export class SessionModel implements IDisposable {
  constructor(private readonly client: Client) {
    this.polled = new Polled(() => this.ask(), EVERY);
    this.polled.changed.connect(() => this.take(this.polled.error ? null : this.polled.answer));
  }

  /** How it stood last; `null` before the first answer. */
  get session(): ISession | null {
    return this._session;
  }

  /** Why it was not told the last time; empty when it was. */
  get error(): string {
    return this.polled.error;
  }

  /** Whether the Hub said that this server does not run any more. */
  get stopped(): boolean {
    return this._stopped;
  }

  /** ms until it ends if nothing changes; `null`: not by itself, or not known. */
  get left(): number | null {
    return this.end === null ? null : this.end - Date.now();
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.polled.isDisposed;
  }

  /** Begin to ask. */
  start(): void {
    this.polled.setShown(true);
  }

  /** Ask now. */
  async refresh(): Promise<void> {
    await this.polled.refresh();
  }

  /** Put the end off. */
  async keep(): Promise<void> {
    this.take(await this.client.keepSession());
  }

  dispose(): void {
    this.polled.dispose();
    this.changed.clear();
  }

  private async ask(): Promise<ISession> {
    try {
      const session = await this.client.session();
      this._stopped = false;
      return session;
    } catch (error) {
      this._stopped = error instanceof ApiError && error.status === NOT_RUNNING;
      throw error;
    }
  }

  private take(session: ISession | null): void {
    if (session !== null) {
      this._session = session;
      // the clocks of the two machines may differ
      this.end = session.endTime === null ? null : Date.now() + session.endTime - session.now;
    }
    this.changed.emit();
  }

  private readonly polled: Polled<ISession>;
  private _session: ISession | null = null;
  private _stopped = false;
  private end: number | null = null;
}
