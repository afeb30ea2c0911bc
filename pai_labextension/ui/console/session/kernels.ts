// The kernels that run as jobs, as last heard, and what a person should know of theirs.

import { Client, IKernelState } from '../data/client';
import { IDisposable, Poll, Signal } from '../data/store';
import { MemoryInfo } from '../generated/types.gen';
import { ITranslation } from '../host';

/** ms between two questions: while something is about to change, and otherwise. */
const SOON = 1_000;
const LATER = 15_000;
const MOST = 60_000;
/** Seconds before its end at which an idle kernel is pointed out, and at most this part of all its time. */
const WARNING = 300;
const WARNING_PART = 0.25;

/** What starts kernels as jobs, as their specifications name it. */
const PROVISIONER = 'pai-provisioner';
/** How often the server is asked about its memory, and ms before each further time: a page may lose its connection with the kernel. */
const TRIES = 5;
const AGAIN = 2_000;

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

export interface IShown {
  readonly kind: 'waits' | 'idle' | 'ended' | 'died';
  readonly words: string;
  readonly log?: string;
}

/**
 * Find what a person should know of a kernel now; nothing of one that runs.
 *
 * @param read - how many deaths they have read of
 */
export function shownOf(state: IKernelState, read: number, trans: ITranslation): IShown | undefined {
  const { phase, reason, idleLeft, idleLimit, deaths, death, log } = state;
  if (phase === 'ended') {
    return { kind: 'ended', words: reason, log };
  }
  if (deaths > read) {
    return { kind: 'died', words: death };
  }
  if (phase !== 'running') {
    return { kind: 'waits', words: reason || trans.__('The kernel waits for its task.') };
  }
  if (endsSoon(state)) {
    const used = Math.round((idleLimit - idleLeft!) / 60);
    const left = Math.ceil(idleLeft! / 60);
    return {
      kind: 'idle',
      words: trans.__(
        'Nobody has used this kernel for %1 min. In %2 min it ends, what it knows is lost, and its GPU is free for others.',
        used,
        left
      )
    };
  }
  return undefined;
}

/** Return whether a kernel of this kind is a job of the scheduler. */
export function isJobKernel(spec: { readonly metadata?: Readonly<Record<string, unknown>> } | undefined): boolean {
  const described = spec?.metadata?.kernel_provisioner as { provisioner_name?: unknown } | undefined;
  return described?.provisioner_name === PROVISIONER;
}

/** Return what is known of the memory where it has cost a kernel; else `null`. */
export async function lostMemory(ask: () => Promise<MemoryInfo>, again = AGAIN): Promise<MemoryInfo | null> {
  for (let tries = 1; ; tries += 1) {
    try {
      const memory = await ask();
      return memory.lost ? memory : null;
    } catch {
      if (tries === TRIES) {
        return null; // not known
      }
      await new Promise(resolve => setTimeout(resolve, again));
    }
  }
}

/** Write what is said of a kernel that the memory has cost. */
export function lostSentence({ limitMB }: MemoryInfo, trans: ITranslation): string {
  return limitMB === null
    ? trans.__(
        'The kernel was ended because the memory was not enough. What it had computed is lost. Load less at once, or start the server with more memory.'
      )
    : trans.__(
        'The kernel was ended because the memory was not enough: all notebooks and terminals of this server together have %1 MB. What it had computed is lost. Load less at once, or start the server with more, for example %2 MB.',
        limitMB,
        2 * limitMB
      );
}
