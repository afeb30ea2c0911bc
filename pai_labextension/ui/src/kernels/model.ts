// Where the kernels are that run as jobs, as last heard; asked often while one of them is on its way, seldom else.

import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { askAgain } from '../again';
import { parsed } from '../answers';
import { ask, request } from '../api';
import { KernelState as IKernelState } from '../generated/types.gen';
import { vKernelStates } from '../generated/valibot.gen';

export type { KernelState as IKernelState } from '../generated/types.gen';

/** ms between two questions: while something is about to change, and otherwise. */
const SOON = 1_000;
const LATER = 15_000;
const MOST = 60_000;
/** Seconds before its end at which an idle kernel is pointed out, and at most this part of all its time. */
const WARNING = 300;
const WARNING_PART = 0.25;

export class KernelsModel implements IDisposable {
  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly language: string,
    private readonly trans: TranslationBundle
  ) {
    this.poll = new Poll({
      name: 'pai-labextension:kernels',
      auto: false,
      factory: () => this.ask(),
      frequency: { interval: SOON, backoff: true, max: MOST },
      standby: 'when-hidden'
    });
    askAgain(this.poll);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  /** Find a kernel by its id; `undefined` for one that is no job, or of which nothing is known yet. */
  state(id: string): IKernelState | undefined {
    return this.states.get(id);
  }

  /** Note that such a kernel is shown somewhere, or none: nobody is asked then. */
  setShown(shown: boolean): void {
    if (shown) {
      void this.poll.refresh();
    } else {
      void this.poll.stop();
    }
  }

  /** Give an idle kernel its whole time again. */
  async keep(id: string): Promise<void> {
    await request(this.settings, this.language, 'POST', `pai/kernels/${encodeURIComponent(id)}/keep`, {});
    await this.poll.refresh();
  }

  dispose(): void {
    this.poll.dispose();
    Signal.clearData(this);
  }

  private async ask(): Promise<void> {
    const answer = await ask(this.settings, this.language, 'GET', 'pai/kernels');
    const { kernels } = parsed(vKernelStates, answer, this.trans);
    this.states = new Map(kernels.map(state => [state.id, state]));
    const soon = kernels.some(state => !['running', 'ended'].includes(state.phase) || endsSoon(state));
    this.poll.frequency = { ...this.poll.frequency, interval: soon ? SOON : LATER };
    this._changed.emit();
  }

  private readonly poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private states = new Map<string, IKernelState>();
}

/** Return whether a kernel ends soon unless somebody uses it. */
export function endsSoon({ idleLeft, idleLimit }: IKernelState): boolean {
  return idleLeft !== null && idleLeft <= Math.min(WARNING, idleLimit * WARNING_PART);
}
