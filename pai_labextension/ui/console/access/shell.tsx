// What is said of a terminal whose shell is not there: it is being opened, cut off, at its end.

import * as React from 'react';

import { useHost } from '../host';
import { TextButton } from '../kit/button';

/** What a terminal is at: `cut` may come back, `ended` does not, `failed` was never there. */
export type ShellState = 'opening' | 'open' | 'cut' | 'ended' | 'failed';

interface IShellNewsProps {
  /** As it is called among the tasks of its job. */
  task: string;
  state: ShellState;
  /** Why there is no shell. */
  reason: string;
  onRetry: () => void;
  onOpen: () => void;
  /** Start another shell in place of the one that is over. */
  onRenew: () => void;
  onClose: () => void;
}

/** Says what is the matter, and offers what helps; nothing while the shell is there. */
export function ShellNews(props: IShellNewsProps): React.ReactElement {
  const { task, state, reason } = props;
  const { trans } = useHost();
  const words: Record<ShellState, string> = {
    opening: trans.__('Opening a terminal in %1 …', task),
    open: '',
    cut: trans.__('The connection is cut; trying to get back. What runs in this terminal goes on.'),
    ended: trans.__('This terminal has ended.'),
    failed: reason
  };
  return (
    <div role={state === 'failed' ? 'alert' : 'status'} className="pai-Shell-news" hidden={state === 'open'}>
      <span>{words[state]}</span>
      {state === 'cut' && <TextButton onClick={props.onRetry}>{trans.__('Try now')}</TextButton>}
      {state === 'failed' && (
        <TextButton accept onClick={props.onOpen}>
          {trans.__('Try again')}
        </TextButton>
      )}
      {state === 'ended' && (
        <TextButton accept onClick={props.onRenew}>
          {trans.__('New terminal')}
        </TextButton>
      )}
      {(state === 'ended' || state === 'failed') && (
        <TextButton onClick={props.onClose}>{trans.__('Close')}</TextButton>
      )}
    </div>
  );
}
