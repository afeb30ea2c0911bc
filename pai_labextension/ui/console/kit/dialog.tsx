// Questions that wait for an answer, and errors that wait to be read: the browser's own dialog.

import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { messageOf } from '../data/errors';
import { IHost } from '../host';
import { TextButton } from './button';

type Stage = Pick<IHost, 'root' | 'trans'>;

/** What is drawn in a dialog, and ends it with an answer. */
export type Content<Answer> = (answer: (answer: Answer) => void) => React.ReactElement;

let opened = 0;

/**
 * Show a dialog until it is answered, or given up by the Escape key (`null`).
 *
 * What has `data-focus` has the focus at first, else the first field or button.
 *
 * @param given - told a function that ends the dialog from outside
 */
export function openDialog<Answer>(
  root: ParentNode,
  title: string,
  content: Content<Answer>,
  given?: (end: () => void) => void
): Promise<Answer | null> {
  const dialog = document.createElement('dialog');
  const id = `pai-dialog-${++opened}`;
  dialog.className = 'pai-Dialog';
  dialog.setAttribute('aria-labelledby', id);
  // (JupyterLab has shortcuts on single keys)
  dialog.setAttribute('data-lm-suppress-shortcuts', 'true');
  root.append(dialog);
  const drawn = createRoot(dialog);
  const before = document.activeElement;
  return new Promise(resolve => {
    let said: Answer | null = null;
    dialog.addEventListener('close', () => {
      drawn.unmount();
      dialog.remove();
      if (before instanceof HTMLElement) {
        before.focus();
      }
      resolve(said);
    });
    given?.(() => dialog.close());
    const answer = (answer: Answer) => {
      said = answer;
      dialog.close();
    };
    const Shown = () => {
      React.useLayoutEffect(() => {
        // (React's own `autoFocus` looks for it before it is shown)
        dialog.querySelector('[data-focus]')?.setAttribute('autofocus', '');
        dialog.showModal();
      }, []);
      return (
        <>
          <h2 id={id}>{title}</h2>
          {content(answer)}
        </>
      );
    };
    drawn.render(<Shown />);
  });
}

/** The buttons at the end of a dialog: to give it up, and to do what it is about. */
export function DialogButtons(props: {
  accept: string;
  cancel: string;
  /** Whether what is done cannot be undone. */
  warn?: boolean;
  disabled?: boolean;
  onCancel: () => void;
}): React.ReactElement {
  const { accept, cancel, warn, disabled, onCancel } = props;
  return (
    <div className="pai-Dialog-buttons">
      <TextButton onClick={onCancel}>{cancel}</TextButton>
      <TextButton
        type="submit"
        accept={!warn}
        data-focus
        disabled={disabled}
        {...(warn ? { className: 'pai-Button pai-mod-warn' } : {})}
      >
        {accept}
      </TextButton>
    </div>
  );
}

/** Ask whether something is meant. `text`: its lines are paragraphs. */
export async function confirm(
  { root, trans }: Stage,
  question: { title: string; text: string; accept: string; cancel?: string; warn?: boolean }
): Promise<boolean> {
  const { title, text, accept, cancel = trans.__('Cancel'), warn = false } = question;
  const answer = await openDialog<boolean>(root, title, answer => (
    <form
      method="dialog"
      onSubmit={event => {
        event.preventDefault();
        answer(true);
      }}
    >
      <Paragraphs text={text} />
      <DialogButtons {...{ accept, cancel, warn }} onCancel={() => answer(false)} />
    </form>
  ));
  return answer === true;
}

/** Say what went wrong, until it was read. */
export async function showError({ root, trans }: Stage, title: string, error: unknown): Promise<void> {
  await openDialog<void>(root, title, answer => (
    <form method="dialog" onSubmit={() => answer()}>
      <Paragraphs text={messageOf(error)} />
      <div className="pai-Dialog-buttons">
        <TextButton type="submit" accept data-focus>
          {trans.__('Dismiss')}
        </TextButton>
      </div>
    </form>
  ));
}

function Paragraphs({ text }: { text: string }): React.ReactElement {
  return (
    <>
      {text.split(/\n+/).map((line, index) => (
        <p key={index}>{line}</p>
      ))}
    </>
  );
}
