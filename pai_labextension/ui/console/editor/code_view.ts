// A code editor of our own on a job's text, where JupyterLab has none for us. Loaded when it comes into view.

import { closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

import { IDisposable } from '../data/store';
import { ITranslation } from '../host';
import { JobCode } from './code';
import { ITextBuffer, JobEditorModel } from './model';
import { Path } from './text';

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--pai-link)' },
  { tag: tags.string, color: 'var(--pai-success)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--pai-warn-strong)' },
  { tag: tags.comment, color: 'var(--pai-ink-2)' }
]);

const THEME = EditorView.theme({
  '&': { height: '100%', color: 'var(--pai-ink-1)', backgroundColor: 'var(--pai-surface-0)' },
  '.cm-scroller': { fontFamily: 'var(--pai-code-font)', fontSize: 'var(--pai-code-size)' },
  '.cm-content': { caretColor: 'var(--pai-ink-1)' },
  '.cm-cursor': { borderLeftColor: 'var(--pai-ink-1)' },
  '.cm-gutters': { color: 'var(--pai-ink-2)', backgroundColor: 'var(--pai-surface-1)', border: 'none' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--pai-surface-3)'
  },
  '.cm-tooltip': {
    color: 'var(--pai-ink-1)',
    backgroundColor: 'var(--pai-surface-1)',
    border: '1px solid var(--pai-border-1)'
  }
});

/** The text of a job in an element, with marks where something is wrong. */
export class CodeView implements IDisposable {
  /** @param element - has nothing else in it */
  constructor(
    element: HTMLElement,
    private readonly buffer: ITextBuffer,
    model: JobEditorModel,
    trans: ITranslation
  ) {
    this.job = new JobCode(model, trans);
    // its styles are made by scripts: in a root of its own they are style sheets, which a strict policy allows
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    this.view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: buffer.text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          EditorView.lineWrapping,
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
          json(),
          syntaxHighlighting(COLOURS),
          THEME,
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) {
              buffer.set(state.doc.toString());
            }
          }),
          ...this.job.extensions
        ]
      })
    });
    this.deaf = buffer.changed.connect(() => this.follow());
    this.job.mark();
  }

  get isDisposed(): boolean {
    return this.job.isDisposed;
  }

  goTo(path: Path): void {
    this.job.goTo(path);
  }

  dispose(): void {
    this.deaf();
    this.job.dispose();
    this.view.destroy();
  }

  /** Show the text as it is now; what is the same before and after a change stays, and with it the cursor. */
  private follow(): void {
    const there = this.view.state.doc.toString();
    const { text } = this.buffer;
    if (there === text) {
      return;
    }
    const most = Math.min(there.length, text.length);
    let from = 0;
    while (from < most && there[from] === text[from]) {
      from += 1;
    }
    let same = 0;
    while (same < most - from && there[there.length - 1 - same] === text[text.length - 1 - same]) {
      same += 1;
    }
    this.view.dispatch({ changes: { from, to: there.length - same, insert: text.slice(from, text.length - same) } });
  }

  private readonly job: JobCode;
  private readonly view: EditorView;
  private readonly deaf: () => void;
}
