// Job files (*.pai.json) in the job editor; JupyterLab loads, saves and closes them as every document.

import { CodeEditor } from '@jupyterlab/codeeditor';
import { ABCWidgetFactory, DocumentRegistry, DocumentWidget } from '@jupyterlab/docregistry';
import { BoxPanel } from '@lumino/widgets';

import { editJobIcon } from '../icon';
import { JobEditor } from './editor';

export const JOB_FILE = 'pai-job';
export const FACTORY = 'PAI job editor';

/** Makes an editor of what is in a file. */
export type MakeEditor = (code: CodeEditor.IModel) => Promise<JobEditor>;

/** Holds the editor once what it is made from has come. */
class LateEditor extends BoxPanel {
  async hold(making: Promise<JobEditor>): Promise<void> {
    const editor = await making;
    if (this.isDisposed) {
      editor.dispose();
      return;
    }
    this.addWidget(editor);
    BoxPanel.setStretch(editor, 1);
  }
}

export class JobDocumentFactory extends ABCWidgetFactory<
  DocumentWidget<LateEditor, DocumentRegistry.ICodeModel>,
  DocumentRegistry.ICodeModel
> {
  /** @param label - of the menu "Open With" */
  constructor(
    private readonly make: MakeEditor,
    label: string
  ) {
    super({ name: FACTORY, label, modelName: 'text', fileTypes: [JOB_FILE, 'json'], defaultFor: [JOB_FILE] });
  }

  protected createNewWidget(
    context: DocumentRegistry.IContext<DocumentRegistry.ICodeModel>
  ): DocumentWidget<LateEditor, DocumentRegistry.ICodeModel> {
    const content = new LateEditor({ spacing: 0 });
    // what is in the file is there before somebody edits it
    const shown = context.ready.then(() => content.hold(this.make(context.model)));
    const widget = new DocumentWidget<LateEditor, DocumentRegistry.ICodeModel>({ content, context, reveal: shown });
    widget.title.icon = editJobIcon;
    return widget;
  }
}
