// The job editor as a widget of JupyterLab's: its code editor, its shared text, files out of its file browser.

import { CodeEditor, CodeEditorWrapper } from '@jupyterlab/codeeditor';
import type { Drag } from '@lumino/dragdrop';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { IJobName } from '../console/data/client';
import { JobCode } from '../console/editor/code';
import { JobEditorModel } from '../console/editor/model';
import { ICodePane, importText, JobEditor } from '../console/editor/page';
import { JobEditorInfo } from '../console/generated/types.gen';
import { IHost } from '../console/host';
import { Mount } from './mount';
import { draggedFile, textBuffer } from './editorText';

/** The events of a drag within JupyterLab. */
const DRAGS = ['lm-dragenter', 'lm-dragover', 'lm-drop'] as const;

export interface IJobEditorOptions {
  readonly code: CodeEditor.IModel;
  readonly factory: CodeEditor.Factory;
  readonly info: JobEditorInfo;
  /** `null`: JupyterLab saves it itself. */
  readonly save: (() => void) | null;
  /** Submit with the code of a folder that is asked for; `null`: it was given up. */
  readonly submitWithCode: (job: Record<string, unknown>) => Promise<IJobName | null>;
  readonly onSubmitted: () => void;
  /** Read a file of the notebook server, or of the storage. */
  readonly readFile: (path: string) => Promise<string>;
}

export class JobEditorWidget extends Mount {
  readonly model: JobEditorModel;

  constructor(
    private readonly place: IHost,
    private readonly options: IJobEditorOptions
  ) {
    super(place, () => {
      const { save, submitWithCode, onSubmitted } = options;
      return React.createElement(JobEditor, { model: this.model, code: this.pane, save, submitWithCode, onSubmitted });
    });
    const { code, factory, info } = options;
    code.mimeType = 'application/json';
    this.model = new JobEditorModel(textBuffer(code.sharedModel), info, place.client, place.trans);
    this.pane = new CodePane(factory, code, new JobCode(this.model, place.trans));
    for (const event of DRAGS) {
      this.node.addEventListener(event, this);
    }
  }

  /** Take a file of JupyterLab's own file browser; other drags are JupyterLab's. */
  handleEvent(event: Event): void {
    const drag = event as Drag.Event;
    const path = draggedFile(drag);
    if (path === null) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    drag.dropAction = drag.proposedAction;
    if (event.type === 'lm-drop') {
      const read = () => this.options.readFile(path);
      void importText(path.replace(/^.*[/:]/, ''), this.model, this.place, read);
    }
  }

  dispose(): void {
    if (!this.isDisposed) {
      super.dispose();
      this.pane.dispose();
      this.model.dispose();
    }
  }

  protected onActivateRequest(): void {
    void this.renderPromise?.then(() => {
      const { activeElement } = document;
      if (activeElement === this.node) {
        // (JupyterLab has put the focus here; in the page a job that is pasted is taken)
        (this.node.firstElementChild as HTMLElement | null)?.focus();
      } else if (!this.isDisposed && !this.node.contains(activeElement)) {
        this.model.wanted.emit(this.model.needed[0] ?? ['jobName']);
      }
    });
  }

  private readonly pane: CodePane;
}

/** JupyterLab's code editor, in whatever element there is for it. */
class CodePane extends CodeEditorWrapper implements ICodePane {
  constructor(
    factory: CodeEditor.Factory,
    model: CodeEditor.IModel,
    private readonly job: JobCode
  ) {
    super({ factory, model, editorOptions: { config: { lineNumbers: true, lineWrap: true } } });
    this.editor.injectExtension([...job.extensions]);
    job.mark();
  }

  attach(element: HTMLElement): () => void {
    Widget.attach(this, element);
    return () => Widget.detach(this);
  }

  goTo(path: Parameters<JobCode['goTo']>[0]): void {
    this.job.goTo(path);
  }

  dispose(): void {
    this.job.dispose();
    super.dispose();
  }
}
