// The plugin: "New PAI job" in launcher, palette and menu, and job files opened in the job editor.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { CodeEditor, IEditorServices } from '@jupyterlab/codeeditor';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { ABCWidgetFactory, DocumentRegistry, DocumentWidget, IDocumentWidget } from '@jupyterlab/docregistry';
import { FileDialog, IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { IMainMenu } from '@jupyterlab/mainmenu';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import { BoxPanel } from '@lumino/widgets';

import { IJobsModel } from '../console/data/jobs';
import { showError } from '../console/kit/dialog';
import { ILabHost, JobsToken } from './host';
import { editJobIcon, paiIcon } from './icon';
import type { NewJobWidget } from './editorDraft';
import type { JobEditorWidget } from './editorWidget';

const JOB_FILE = 'pai-job';
/** How names of job files end. */
export const ENDING = '.pai.json';
const FACTORY = 'PAI job editor';
const COMMAND = 'pai:new-job';
const NAMESPACE = 'pai-job-editor';
/** Begins what is kept of an editor; not as the tracker's own begins, which removes what it does not know. */
const KEPT = 'pai-job-text';

export const editorPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:job-editor',
  description: 'Writes a job as a form and as JSON, says whether it fits, and submits it.',
  autoStart: true,
  requires: [ILabHost, IEditorServices, JobsToken, IDocumentManager],
  optional: [ICommandPalette, ILauncher, IMainMenu, ILayoutRestorer, IStateDB, IDefaultFileBrowser, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    host: ILabHost,
    { factoryService }: IEditorServices,
    jobs: IJobsModel,
    manager: IDocumentManager,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    menu: IMainMenu | null,
    restorer: ILayoutRestorer | null,
    state: IStateDB | null,
    browser: IDefaultFileBrowser | null,
    someTranslator: ITranslator | null
  ) => {
    const { client, trans } = host;
    const { commands, docRegistry, serviceManager, shell } = app;
    const translator = someTranslator ?? nullTranslator;
    const tracker = new WidgetTracker<NewJobWidget>({ namespace: NAMESPACE });
    const files = new WidgetTracker<IDocumentWidget>({ namespace: `${NAMESPACE}-file` });

    const makeEditor = async (code: CodeEditor.IModel, save: (() => void) | null) => {
      const [info, { JobEditorWidget }] = await Promise.all([client.editorInfo(), import('./editorWidget')]);
      const submitCode = async (job: Record<string, unknown>) => {
        const { button, value } = await FileDialog.getExistingDirectory({
          manager,
          translator,
          title: trans.__('Which folder goes along?'),
          label: trans.__('Its code is copied into the storage, and from there into every task.'),
          ...(browser ? { defaultPath: serviceManager.contents.localPath(browser.model.path) } : {})
        });
        const path = value?.[0]?.path;
        if (!button.accept || path === undefined) {
          return null;
        }
        const { submitWithCode } = await import('../console/submit/code');
        return await submitWithCode({ path: serviceManager.contents.localPath(path), job }, host);
      };
      const readFile = async (path: string) => {
        const file = await serviceManager.contents.get(path, { type: 'file', format: 'text', content: true });
        return file.content as string;
      };
      return new JobEditorWidget(host, {
        ...{ code, info, save, readFile, submitWithCode: submitCode },
        factory: factoryService.newDocumentEditor,
        onSubmitted: () => void jobs.refresh()
      });
    };

    /** Open an editor on a job that is no file; `key`: one that was open before the page was loaded again. */
    const openNew = async (text: string | null, cwd: string, key: string) => {
      const { keptJob, NewJobWidget, saveJob } = await import('./editorDraft');
      const { emptyJob, uniqueName } = await import('../console/editor/text');
      const code = new CodeEditor.Model({ mimeType: 'application/json' });
      const save = async () => {
        const { model } = widget.content;
        const { jobName } = model.config;
        const name = typeof jobName === 'string' && jobName !== '' ? jobName : 'job';
        const path = await saveJob(model.text, name, cwd, serviceManager.contents, host);
        if (path !== null) {
          widget.discard();
          await commands.execute('docmanager:open', { path, factory: FACTORY });
        }
        return path !== null;
      };
      const editor = await makeEditor(code, () => void save());
      editor.disposed.connect(() => code.dispose());
      editor.model.setText(emptyJob(editor.model.info.imageNeeded, uniqueName('job')), { beginning: true });
      const kept = await keptJob(state, key);
      if (kept) {
        editor.model.setText(kept.text, { submitted: kept.submitted });
      } else if (text !== null) {
        editor.model.setText(text, { beginning: true });
      }
      const widget = new NewJobWidget(editor, key, state, host, save);
      shell.add(widget, 'main');
      await tracker.add(widget);
      shell.activateById(widget.id);
      return widget;
    };

    commands.addCommand(COMMAND, {
      label: trans.__('New PAI job'),
      caption: trans.__('Write a job for the GPU cluster, and submit it'),
      icon: args => (args.isPalette ? undefined : paiIcon),
      describedBy: {
        args: {
          type: 'object',
          properties: {
            config: { type: 'object', description: 'The job to begin with' },
            from: {
              type: 'object',
              description: 'A job of which a copy is made',
              properties: { name: { type: 'string' }, user: { type: 'string' } },
              required: ['name', 'user']
            },
            path: { type: 'string', description: 'A job file to open' },
            cwd: { type: 'string', description: 'The folder in which it is saved' }
          }
        }
      },
      execute: async ({ config, from, path, cwd, restore }) => {
        try {
          if (typeof path === 'string') {
            return (await commands.execute('docmanager:open', { path, factory: FACTORY })) as unknown;
          }
          const folder = typeof cwd === 'string' ? cwd : (browser?.model.path ?? '');
          const key = typeof restore === 'string' ? restore : `${KEPT}:${UUID.uuid4()}`;
          const { isObject, textOf } = await import('../console/editor/text');
          const { copyOf } = await import('../console/editor/model');
          const job = isObject(from) ? { username: from.user as string, name: from.name as string } : null;
          const copy = job && (await copyOf(client, job));
          return await openNew(copy ?? (config ? textOf(config) : null), folder, key);
        } catch (error) {
          await showError(host, trans.__('The job editor could not be opened'), error);
          return undefined;
        }
      }
    });

    docRegistry.addFileType({
      name: JOB_FILE,
      displayName: trans.__('PAI job'),
      extensions: [ENDING],
      mimeTypes: ['application/json'],
      fileFormat: 'text',
      contentType: 'file',
      icon: paiIcon
    });
    const factory = new JobDocumentFactory(code => makeEditor(code, null), trans.__('PAI job editor'));
    factory.widgetCreated.connect((_, widget) => {
      widget.context.pathChanged.connect(() => void files.save(widget));
      void files.add(widget);
    });
    docRegistry.addWidgetFactory(factory);

    palette?.addItem({ command: COMMAND, category: trans.__('PAI'), args: { isPalette: true } });
    // right below the notebooks, and first of its kind
    launcher?.add({ command: COMMAND, category: trans.__('PAI'), categoryRank: 10, rank: 1 });
    menu?.fileMenu.newMenu.addGroup([{ command: COMMAND }], 40);
    void restorer?.restore(tracker, {
      command: COMMAND,
      args: ({ key }) => ({ restore: key }),
      name: ({ key }) => key
    });
    void restorer?.restore(files, {
      command: 'docmanager:open',
      args: ({ context }) => ({ path: context.path, factory: FACTORY }),
      name: ({ context }) => context.path
    });
  }
};

/** Makes an editor of what is in a file. */
type MakeEditor = (code: CodeEditor.IModel) => Promise<JobEditorWidget>;

/** Holds the editor once what it is made from has come. */
class LateEditor extends BoxPanel {
  async hold(making: Promise<JobEditorWidget>): Promise<void> {
    const editor = await making;
    if (this.isDisposed) {
      editor.dispose();
      return;
    }
    this.addWidget(editor);
    BoxPanel.setStretch(editor, 1);
  }
}

class JobDocumentFactory extends ABCWidgetFactory<
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
