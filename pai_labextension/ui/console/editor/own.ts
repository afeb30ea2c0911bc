// The job editor where no JupyterLab is around it: a text in memory, and a code editor that is loaded when it is seen.

import type { Edit } from 'jsonc-parser';

import { IJobName } from '../data/client';
import { IDisposable, Signal } from '../data/store';
import { IHost } from '../host';
import type { CodeView } from './code_view';
import { copyOf, ITextBuffer, JobEditorModel } from './model';
import type { ICodePane } from './page';
import { applied, emptyJob, Path, uniqueName } from './text';

/** A text that nobody else shows. */
export class PlainText implements ITextBuffer {
  readonly changed = new Signal();

  get text(): string {
    return this._text;
  }

  set(text: string): void {
    if (text !== this._text) {
      this._text = text;
      this.changed.emit();
    }
  }

  edit(changes: readonly Edit[]): void {
    this.set(applied(this._text, [...changes]));
  }

  private _text = '';
}

/** A job that is edited, and its code beside the form. */
export class OwnEditor implements ICodePane, IDisposable {
  constructor(
    readonly model: JobEditorModel,
    private readonly buffer: ITextBuffer,
    private readonly host: IHost
  ) {}

  get isDisposed(): boolean {
    return this.model.isDisposed;
  }

  attach(element: HTMLElement): () => void {
    const inside = document.createElement('div');
    element.append(inside);
    let isThere = true;
    const load = async () => {
      const { CodeView } = await import('./code_view');
      if (isThere) {
        this.view = new CodeView(inside, this.buffer, this.model, this.host.trans);
        if (this.wanted) {
          this.view.goTo(this.wanted);
        }
      }
    };
    const seen = new IntersectionObserver(entries => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) {
        seen.disconnect();
        void load();
      }
    });
    seen.observe(inside);
    return () => {
      isThere = false;
      seen.disconnect();
      this.view?.dispose();
      this.view = undefined;
      inside.remove();
    };
  }

  goTo(path: Path): void {
    this.wanted = path;
    this.view?.goTo(path);
  }

  dispose(): void {
    this.view?.dispose();
    this.model.dispose();
  }

  private view: CodeView | undefined;
  private wanted: Path | undefined;
}

/** Open the editor on an empty job, or on a copy of one. */
export async function openEditor(host: IHost, from?: IJobName): Promise<OwnEditor> {
  const { client, trans } = host;
  const [info, copy] = await Promise.all([client.editorInfo(), from && copyOf(client, from)]);
  const buffer = new PlainText();
  const model = new JobEditorModel(buffer, info, client, trans);
  model.setText(copy ?? emptyJob(info.imageNeeded, uniqueName('job')), { beginning: true });
  return new OwnEditor(model, buffer, host);
}
