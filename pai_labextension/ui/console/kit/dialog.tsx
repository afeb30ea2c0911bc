// Questions that wait for an answer, and errors that wait to be read: the browser's own dialog.

import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { messageOf } from '../data/errors';
import { IHost } from '../host';
import { TextButton } from './button';
import { TextField } from './field';

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
    let isOver = false;
    given?.(() => {
      isOver = true;
      dialog.close();
    });
    const answer = (answer: Answer) => {
      said = answer;
      dialog.close();
    };
    const Shown = () => {
      React.useLayoutEffect(() => {
        // (React's own `autoFocus` looks for it before it is shown)
        dialog.querySelector('[data-focus]')?.setAttribute('autofocus', '');
        dialog.showModal();
        if (isOver) {
          dialog.close(); // it was over before it was shown
        }
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
  disabled?: boolean;
  /** Whether what it is about cannot be undone. */
  warn?: boolean;
  /** Whether it has the focus at first: not where there is a field to be filled in. */
  focus?: boolean;
  onCancel: () => void;
}): React.ReactElement {
  const { accept, cancel, disabled, warn = false, focus = true, onCancel } = props;
  return (
    <div className="pai-Dialog-buttons">
      <TextButton onClick={onCancel}>{cancel}</TextButton>
      <TextButton
        type="submit"
        accept={!warn}
        {...(warn ? { className: 'pai-Button pai-mod-warn' } : {})}
        {...(focus ? { 'data-focus': true } : {})}
        disabled={disabled}
      >
        {accept}
      </TextButton>
    </div>
  );
}

/** A button that answers a question. */
export interface IChoice<Answer> {
  readonly label: string;
  readonly answer: Answer;
  /** What most people want, or what cannot be undone. */
  readonly kind?: 'accept' | 'warn';
}

/** Ask a question that has a few answers; the last one, or the one of that number, has the focus. */
export function choose<Answer>(
  root: ParentNode,
  title: string,
  content: React.ReactNode,
  choices: readonly IChoice<Answer>[],
  focus = choices.length - 1
): Promise<Answer | null> {
  return openDialog<Answer>(root, title, give => (
    <>
      {content}
      <div className="pai-Dialog-buttons">
        {choices.map(({ label, answer, kind }, index) => (
          <TextButton
            key={label}
            accept={kind === 'accept'}
            {...(kind === 'warn' ? { className: 'pai-Button pai-mod-warn' } : {})}
            {...(index === focus ? { 'data-focus': true } : {})}
            onClick={() => give(answer)}
          >
            {label}
          </TextButton>
        ))}
      </div>
    </>
  ));
}

/** A question to which people say yes or no. */
export interface IQuestion {
  readonly title: string;
  /** Its lines are paragraphs. */
  readonly text: string;
  /** Shown below the text. */
  readonly more?: React.ReactNode;
  readonly accept: string;
  readonly cancel?: string;
  /** Whether what is done cannot be undone. */
  readonly warn?: boolean;
  /** Whether who only presses Enter gives it up. */
  readonly careful?: boolean;
}

/** Ask whether something is meant. */
export async function confirm({ root, trans }: Stage, question: IQuestion): Promise<boolean> {
  const { title, text, more, accept, cancel = trans.__('Cancel'), warn = false, careful = false } = question;
  const content = (
    <>
      <Paragraphs text={text} />
      {more}
    </>
  );
  const choices: IChoice<boolean>[] = [
    { label: cancel, answer: false },
    { label: accept, answer: true, kind: warn ? 'warn' : 'accept' }
  ];
  return (await choose(root, title, content, choices, careful ? 0 : 1)) === true;
}

/** Ask for a line of text; `null`: it was given up, or is blank. */
export async function ask(
  { root, trans }: Stage,
  question: { title: string; label: string; value: string; accept: string }
): Promise<string | null> {
  const { title, label, value, accept } = question;
  const Line = ({ answer }: { answer: (text: string) => void }) => {
    const [typed, setTyped] = React.useState(value);
    return (
      <form
        onSubmit={event => {
          event.preventDefault();
          answer(typed);
        }}
      >
        <TextField label={label} value={typed} onChange={setTyped} />
        <DialogButtons accept={accept} cancel={trans.__('Cancel')} onCancel={() => answer('')} />
      </form>
    );
  };
  const given = (await openDialog<string>(root, title, answer => <Line answer={answer} />))?.trim();
  return given === undefined || given === '' ? null : given;
}

/** Say what went wrong, until it was read. */
export async function showError({ root, trans }: Stage, title: string, error: unknown): Promise<void> {
  const choices: IChoice<null>[] = [{ label: trans.__('Dismiss'), answer: null, kind: 'accept' }];
  await choose(root, title, <Paragraphs text={messageOf(error)} />, choices);
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
