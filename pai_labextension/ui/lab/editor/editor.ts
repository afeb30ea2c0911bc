// The job editor: head, form and JSON side by side (tabs where that is too narrow), and Submit beneath.

import { showErrorMessage } from '@jupyterlab/apputils';
import { CodeEditor } from '@jupyterlab/codeeditor';
import type { Drag } from '@lumino/dragdrop';
import { MessageLoop } from '@lumino/messaging';
import { PanelLayout, SplitPanel, Widget } from '@lumino/widgets';

import { Client } from '../../console/data/client';
import { Signal } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { JobEditorInfo, JobTemplate } from '../../console/generated/types.gen';
import { CodePane } from './codePane';
import { draggedFile, DRAGS } from './dropped';
import { FormView } from './form';
import { Head, Side } from './head';
import { JobEditorModel } from './model';
import { inputId } from './fields';
import { SubmitBar } from './submitBar';
import { Path, textOf, uniqueName } from './text';

/** px below which form and JSON have no room beside each other. */
const NARROW = 720;
/** Bytes of the longest text that the scheduler takes. */
const LONGEST = 8 * 1024 * 1024;

export interface IJobEditorOptions {
  readonly code: CodeEditor.IModel;
  readonly factory: CodeEditor.Factory;
  readonly info: JobEditorInfo;
  readonly api: Client;
  readonly trans: ITranslation;
  /** The job was submitted, or its page is wanted. */
  readonly onOpen: (name: string, user: string) => void;
  /** `null`: JupyterLab saves it itself. */
  readonly onSave: (() => void) | null;
  /** Submit with the code of a folder that is asked for; `null`: it was given up. */
  readonly submitWithCode: (job: Record<string, unknown>) => Promise<{ name: string; username: string } | null>;
  /** Read a file of the notebook server, or of the storage. */
  readonly readFile: (path: string) => Promise<string>;
}

export class JobEditor extends Widget {
  readonly model: JobEditorModel;

  constructor(private readonly options: IJobEditorOptions) {
    super();
    const { code, factory, info, api, trans, onSave } = options;
    this.addClass('pai-JobEditor');
    code.mimeType = 'application/json';
    this.model = new JobEditorModel(code.sharedModel, info, api, trans);
    const id = `pai-job-editor-${(count += 1)}`;
    this.inputs = id;
    this.form = new FormView(this.model, trans, id);
    this.form.id = `${id}-form`;
    this.pane = new CodePane(factory, code, this.model, trans);
    this.pane.id = `${id}-json`;
    const head = new Head(
      {
        templates: info.templates,
        trans,
        id,
        actions: {
          take: template => this.take(template),
          importFile: file => void this.importFile(file),
          undo: () => this.undo(),
          show: side => this.showSide(side),
          save: onSave
        }
      },
      () => ({
        notice: this.notice,
        canUndo: this.before !== null,
        side: this.isNarrow ? this.side : null,
        isUntouched: this.model.isUntouched
      }),
      this.headChanged
    );
    const bar = new SubmitBar(this.model, trans, {
      submit: () => void this.submit(),
      submitWithCode: () => void this.submitWithCode(),
      open: name => options.onOpen(name, this.model.user ?? ''),
      goTo: path => this.goTo(path)
    });
    this.sides = new SplitPanel({ orientation: 'horizontal', spacing: 4 });
    this.sides.addClass('pai-JobSides');
    this.sides.addWidget(this.form);
    this.sides.addWidget(this.pane);
    this.sides.setRelativeSizes(this.sizes);
    this.sides.handleMoved.connect(() => {
      this.sizes = this.sides.relativeSizes();
    });
    const layout = (this.layout = new PanelLayout());
    for (const widget of [head, this.sides, bar]) {
      layout.addWidget(widget);
    }
    // (what head and bar say decides how much is left)
    this.observer = new ResizeObserver(() => {
      MessageLoop.postMessage(this.sides, Widget.ResizeMessage.UnknownSize);
    });
    this.observer.observe(this.sides.node);
    this.model.changed.connect(() => this.headChanged.emit());
    for (const event of ['dragover', 'drop', 'paste', ...DRAGS]) {
      this.node.addEventListener(event, this);
    }
  }

  /** Replace the whole job; what stood there can be had back. */
  replace(text: string, notice: string): void {
    this.before = this.model.isUntouched ? null : this.model.text;
    this.notice = notice;
    this.model.setText(text);
  }

  handleEvent(event: Event): void {
    if (event.type.startsWith('lm-')) {
      this.onDrag(event as Drag.Event);
      return;
    }
    const transfer = event instanceof ClipboardEvent ? event.clipboardData : (event as DragEvent).dataTransfer;
    const [file] = transfer?.files ?? [];
    const isFile = transfer?.types.includes('Files') ?? false;
    if (event.type === 'paste') {
      const target = event.target as HTMLElement;
      // where there is something to type, it goes there
      const text = target.closest('input, textarea, .cm-editor') ? '' : (transfer?.getData('text/plain') ?? '');
      if (text.trim().startsWith('{')) {
        event.preventDefault();
        this.replace(text, this.options.trans.__('Pasted.'));
      }
    } else if (isFile) {
      event.preventDefault();
      event.stopPropagation();
      if (event.type === 'drop' && file) {
        void this.importFile(file);
      }
    }
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.observer.disconnect();
      this.model.dispose();
      this.headChanged.clear();
      super.dispose();
    }
  }

  protected onAfterShow(): void {
    this.model.cluster.setShown(true);
  }

  protected onAfterAttach(): void {
    this.model.cluster.setShown(this.isVisible);
  }

  protected onBeforeHide(): void {
    this.model.cluster.setShown(false);
  }

  protected onActivateRequest(): void {
    const first = this.model.needed[0] ?? ['jobName'];
    if (!this.node.contains(document.activeElement)) {
      this.goTo(first);
    }
  }

  protected onResize(message: Widget.ResizeMessage): void {
    const width = message.width < 0 ? this.node.offsetWidth : message.width;
    if (width > 0 && width < NARROW !== this.isNarrow) {
      this.isNarrow = width < NARROW;
      this.arrange();
      if (!this.isNarrow) {
        // a side that was hidden comes back as narrow as it can be, and takes a size once it has room
        MessageLoop.sendMessage(this.sides, Widget.Msg.FitRequest);
        this.sides.setRelativeSizes(this.sizes);
      }
    }
  }

  /** Take a file of JupyterLab's own file browser; other drags are JupyterLab's. */
  private onDrag(event: Drag.Event): void {
    const path = draggedFile(event);
    if (path === null) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    event.dropAction = event.proposedAction;
    if (event.type === 'lm-drop') {
      void this.importText(path.replace(/^.*[/:]/, ''), () => this.options.readFile(path));
    }
  }

  /** Show one side or both; these are as wide as before. */
  private arrange(): void {
    this.form.setHidden(this.isNarrow && this.side !== 'form');
    this.pane.setHidden(this.isNarrow && this.side !== 'json');
    for (const widget of [this.form, this.pane]) {
      if (this.isNarrow) {
        widget.node.setAttribute('role', 'tabpanel');
        widget.node.setAttribute('aria-labelledby', `${widget.id}-tab`);
      } else {
        widget.node.removeAttribute('role');
        widget.node.removeAttribute('aria-labelledby');
      }
    }
    this.headChanged.emit();
  }

  private showSide(side: Side): void {
    this.side = side;
    this.arrange();
  }

  private take(template: JobTemplate): void {
    const config = { ...template.config, jobName: uniqueName(template.name) };
    this.replace(textOf(config), template.description);
  }

  private async importFile(file: File): Promise<void> {
    await this.importText(file.name, async () => {
      if (file.size > LONGEST) {
        throw new Error(this.options.trans.__('This file is larger than 8 MiB, which no job is.'));
      }
      return new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
    });
  }

  private async importText(name: string, read: () => Promise<string>): Promise<void> {
    const { trans } = this.options;
    try {
      this.replace(await read(), trans.__('Imported: %1', name));
    } catch (error) {
      const message =
        error instanceof TypeError
          ? trans.__('This file is no text in UTF-8; save it as UTF-8 and choose it again.')
          : (error as Error).message;
      await showErrorMessage(trans.__('“%1” was not imported', name), message);
    }
  }

  private undo(): void {
    if (this.before !== null) {
      this.model.setText(this.before);
    }
    this.before = null;
    this.notice = '';
    this.headChanged.emit();
  }

  /** Go to what keeps the job from being submitted; tell whether something does. */
  private isHeldBack(): boolean {
    const place = this.model.needed[0] ?? this.model.mistakes[0]?.path;
    if (place) {
      this.goTo(place);
    }
    return place !== undefined;
  }

  private async submitWithCode(): Promise<void> {
    if (this.isHeldBack()) {
      return;
    }
    const { text, config } = this.model;
    try {
      const job = await this.options.submitWithCode(config);
      if (job) {
        this.model.setSubmitted(text, job.name);
        this.options.onOpen(job.name, job.username);
      }
    } catch (error) {
      await showErrorMessage(this.options.trans.__('The job was not submitted'), error as Error);
    }
  }

  private async submit(): Promise<void> {
    if (this.isHeldBack()) {
      return;
    }
    const job = await this.model.submit();
    if (job) {
      this.options.onOpen(job.name, job.user);
    } else if (this.model.mistakes[0]) {
      this.goTo(this.model.mistakes[0].path);
    }
  }

  /** Go to the input of a field, or where it has none to its place in the JSON. */
  private goTo(path: Path): void {
    const input = this.inputOf(path);
    if (input) {
      this.showSide('form');
      input.focus();
    } else {
      this.showSide('json');
      this.pane.goTo(path);
    }
  }

  /** Return the input of a field, or that of the list or object which it is a part of. */
  private inputOf(path: Path): HTMLElement | null {
    for (let length = path.length; length > 0; length -= 1) {
      const input = document.getElementById(inputId(this.inputs, path.slice(0, length)));
      if (input) {
        return input;
      }
    }
    return null;
  }

  private readonly form: FormView;
  private readonly pane: CodePane;
  private readonly sides: SplitPanel;
  private readonly observer: ResizeObserver;
  private readonly inputs: string;
  private readonly headChanged = new Signal();
  private side: Side = 'form';
  /** Of form and JSON where both are shown: as it was dragged last. */
  private sizes = [3, 2];
  private isNarrow = false;
  private notice = '';
  private before: string | null = null;
}

let count = 0;
