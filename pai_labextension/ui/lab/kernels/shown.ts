// What a person should know of their kernel now, in words.

import { ITranslation } from '../../console/host';
import { endsSoon, IKernelState } from './model';

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
