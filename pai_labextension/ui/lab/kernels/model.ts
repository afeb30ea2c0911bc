// Where the kernels are that run as jobs, as last heard; asked often while one of them is on its way, seldom else.

import { Client } from '../../console/data/client';
import { IDisposable, Poll, Signal } from '../../console/data/store';
import { KernelState as IKernelState } from '../../console/generated/types.gen';

export type { KernelState as IKernelState } from '../../console/generated/types.gen';

/** ms between two questions: while something is about to change, and otherwise. */
const SOON = 1_000;
const LATER = 15_000;
const MOST = 60_000;
/** Seconds before its end at which an idle kernel is pointed out, and at most this part of all its time. */
const WARNING = 300;
const WARNING_PART = 0.25;

export class KernelsModel implements IDisposable {
  constructor(private readonly client: Client) {
    this.poll = new Poll(() => this.ask(), { interval: SOON, max: MOST });
  }

  readonly changed = new Signal();

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
      this.poll.stop();
    }
  }

  /** Give an idle kernel its whole time again. */
  async keep(id: string): Promise<void> {
    await this.client.keepKernel(id);
    await this.poll.refresh();
  }

  dispose(): void {
    this.poll.dispose();
    this.changed.clear();
  }

  private async ask(): Promise<void> {
    const kernels = await this.client.kernels();
    this.states = new Map(kernels.map(state => [state.id, state]));
    const soon = kernels.some(state => !['running', 'ended'].includes(state.phase) || endsSoon(state));
    this.poll.interval = soon ? SOON : LATER;
    this.changed.emit();
  }

  private readonly poll: Poll;
  private states = new Map<string, IKernelState>();
}

/** Return whether a kernel ends soon unless somebody uses it. */
export function endsSoon({ idleLeft, idleLimit }: IKernelState): boolean {
  return idleLeft !== null && idleLeft <= Math.min(WARNING, idleLimit * WARNING_PART);
}
