// CodeMirror on a job's text: marks where something is wrong, and completion of fields and their values.

import { autocompletion, Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import { Extension } from '@codemirror/state';
import { EditorView, ViewPlugin } from '@codemirror/view';
import { getLocation } from 'jsonc-parser';

import { IDisposable } from '../data/store';
import { ITranslation } from '../host';
import { JobEditorModel } from './model';
import { Path, rangeOf, textErrorWords, valueAt } from './text';

/** Makes of a code editor with its extensions one of a job. */
export class JobCode implements IDisposable {
  readonly extensions: readonly Extension[];

  constructor(
    private readonly job: JobEditorModel,
    private readonly trans: ITranslation
  ) {
    this.extensions = [
      lintGutter(),
      autocompletion({ override: [completeJob(job)] }),
      EditorView.contentAttributes.of({ 'aria-label': trans.__('Job as JSON') }),
      // (the editor gives its view to extensions only)
      ViewPlugin.define(view => {
        this.view = view;
        return {};
      })
    ];
    this.deaf = job.changed.connect(() => this.mark());
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Put the cursor where something is in the text. */
  goTo(path: Path): void {
    const { from } = rangeOf(this.job.tree, path);
    this.view?.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    this.view?.focus();
  }

  /** Mark what is wrong. */
  mark(): void {
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

  dispose(): void {
    this._isDisposed = true;
    this.deaf();
  }

  private view: EditorView | undefined;
  private readonly deaf: () => void;
  private marked = '[]';
  private _isDisposed = false;
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

/** Complete names of fields, and values; for CodeMirror's `autocompletion`. */
export function completeJob(model: JobEditorModel): (context: CompletionContext) => CompletionResult | null {
  return ({ state, pos, explicit }) => {
    const text = state.doc.toString();
    const { path, isAtPropertyKey, previousNode } = getLocation(text, pos);
    const isInside = previousNode && previousNode.offset <= pos && pos <= previousNode.offset + previousNode.length;
    const word = /["\w]*$/.exec(text.slice(0, pos))![0];
    if (!isInside && word === '' && !explicit) {
      return null;
    }
    const from = isInside ? previousNode.offset : pos - word.length;
    const to = isInside ? previousNode.offset + previousNode.length : pos;
    const options = isAtPropertyKey ? names(model, path.slice(0, -1), text.slice(to)) : values(model, path);
    return options.length > 0 ? { from, to, options, validFor: /^"?[\w-]*$/ } : null;
  };
}

/** Complete the name of a field that is not there yet, with the value that it begins with. */
function names(model: JobEditorModel, path: Path, rest: string): Completion[] {
  const there = valueAt(model.config, path);
  const taken = new Set(typeof there === 'object' && there !== null ? Object.keys(there) : []);
  const hasValue = /^\s*:/.test(rest);
  return model.schema
    .names(path)
    .filter(name => !taken.has(name) || hasValue)
    .map(name => {
      const { title, description } = model.schema.words([...path, name]);
      const beginning = JSON.stringify(model.schema.beginning([...path, name]));
      return {
        label: `"${name}"`,
        detail: title,
        info: description,
        type: 'property',
        apply: hasValue ? `"${name}"` : `"${name}": ${beginning}`
      };
    });
}

function values(model: JobEditorModel, path: Path): Completion[] {
  const cluster = model.cluster.answer;
  const known: Record<string, readonly unknown[]> = {
    virtualCluster: cluster?.virtualClusters ?? [],
    gpuType: [...new Set(cluster?.nodes.flatMap(({ gpus }) => gpus.map(({ type }) => type)))],
    image: model.info.images
  };
  const found = path.length === 1 ? known[String(path[0])] : undefined;
  return (found ?? model.schema.values(path)).map(value => ({ label: JSON.stringify(value), type: 'constant' }));
}
