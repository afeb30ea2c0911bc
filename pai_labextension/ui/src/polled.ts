// The answer to one question, asked again and again while somebody looks, less often while nobody answers.

import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { askAgain } from './again';

/** ms between two questions, and at most after failed ones. */
const INTERVAL = 5_000;
const MAX_INTERVAL = 30_000;

export class Polled<Answer> implements IDisposable {
  /**
   * @param name - of what is asked for, for JupyterLab's own messages
   * @param interval - ms between two questions
   */
  constructor(
    name: string,
    private readonly question: () => Promise<Answer>,
    interval = INTERVAL
  ) {
    this.poll = new Poll({
      name: `pai-labextension:${name}`,
      auto: false,
      factory: () => this.ask(),
      frequency: { interval, backoff: true, max: MAX_INTERVAL },
      standby: 'when-hidden'
    });
    askAgain(this.poll);
  }

  /** What was answered last; `null` until the first answer. */
  get answer(): Answer | null {
    return this._answer;
  }

  /** When that was, in ms since the epoch; 0 until the first answer. */
  get answeredAt(): number {
    return this._answeredAt;
  }

  /** Why the last question had no answer; empty when it had one. */
  get error(): string {
    return this._error;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  /** Ask now; resolves when answered. */
  async refresh(): Promise<void> {
    await this.poll.refresh();
    await this.poll.tick;
  }

  /** Note that the answer came into view, or went: nobody is asked while nobody looks. */
  setShown(shown: boolean): void {
    void (shown ? this.poll.start() : this.poll.stop());
  }

  dispose(): void {
    this.poll.dispose();
    Signal.clearData(this);
  }

  private async ask(): Promise<void> {
    try {
      this._answer = await this.question();
      this._answeredAt = Date.now();
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

  private readonly poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _answer: Answer | null = null;
  private _answeredAt = 0;
  private _error = '';
}
