// The job's JSON in JupyterLab's own code editor, with what is wrong where it is wrong, and completion.

import { autocompletion } from '@codemirror/autocomplete';
import { Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import { EditorView, ViewPlugin } from '@codemirror/view';
import { CodeEditor, CodeEditorWrapper } from '@jupyterlab/codeeditor';

import { ITranslation } from '../../console/host';
import { completeJob } from './completion';
import { JobEditorModel } from './model';
import { Path, rangeOf } from './text';
import { textErrorWords } from './textErrors';

export class CodePane extends CodeEditorWrapper {
  constructor(
    factory: CodeEditor.Factory,
    code: CodeEditor.IModel,
    private readonly job: JobEditorModel,
    private readonly trans: ITranslation
  ) {
    super({ factory, model: code, editorOptions: { config: { lineNumbers: true, lineWrap: true } } });
    this.addClass('pai-JobCode');
    this.editor.injectExtension([
      lintGutter(),
      autocompletion({ override: [completeJob(job)] }),
      EditorView.contentAttributes.of({ 'aria-label': trans.__('Job as JSON') }),
      // (the editor gives its view to extensions only)
      ViewPlugin.define(view => {
        this.view = view;
        return {};
      })
    ]);
    this.deaf = job.changed.connect(() => this.mark());
    this.mark();
  }

  /** Put the cursor where something is in the text. */
  goTo(path: Path): void {
    const { from } = rangeOf(this.job.tree, path);
    this.view?.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    this.editor.focus();
  }

  dispose(): void {
    this.deaf();
    super.dispose();
  }

  /** Mark what is wrong. */
  private mark(): void {
    const { view } = this;
    // while an edit is on its way here, the text that is marked would be another; its arrival is told again
    if (view?.state.doc.length !== this.job.text.length) {
      return;
    }
    const found = marks(this.job, this.trans);
    const key = JSON.stringify(found);
    if (key !== this.marked) {
      this.marked = key;
      queueMicrotask(() => {
        if (!this.isDisposed && view.state.doc.length === this.job.text.length) {
          view.dispatch(setDiagnostics(view.state, found));
        }
      });
    }
  }

  private view: EditorView | undefined;
  private readonly deaf: () => void;
  private marked = '[]';
}

/** Return what is wrong with a job as marks in its text; what is only still needed is pointed out, not called wrong. */
export function marks(job: JobEditorModel, trans: ITranslation): Diagnostic[] {
  const error = job.textError;
  if (error) {
    const from = Math.min(error.offset, job.text.length);
    const to = Math.min(error.offset + Math.max(1, error.length), job.text.length);
    return [{ from, to, severity: 'error', message: textErrorWords(error, trans) }];
  }
  return [
    ...job.mistakes.map(({ path, message }) => ({
      ...rangeOf(job.tree, path),
      severity: 'error' as const,
      message
    })),
    ...job.warnings.map(({ path, message }) => ({
      ...rangeOf(job.tree, path),
      severity: 'warning' as const,
      message
    })),
    ...job.needed.map(path => ({
      ...rangeOf(job.tree, path),
      severity: 'info' as const,
      message: trans.__('Still needed: %1', job.schema.words(path).title)
    }))
  ];
}
