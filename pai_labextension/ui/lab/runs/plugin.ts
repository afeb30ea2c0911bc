// The plugin: "Run as a PAI job" on notebooks and scripts, in the file browser and in a notebook's toolbar.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification, showErrorMessage } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Contents } from '@jupyterlab/services';
import { CommandToolbarButton } from '@jupyterlab/ui-components';

import { ILabHost, JobsToken } from '../host';
import { paiIcon } from '../icon';
import { IJobsModel } from '../../console/data/jobs';
import { runAsJob } from './dialog';
import { canRun } from './model';

const COMMAND = 'pai:run-as-job';
/** Files of the notebook server; those of the storage are no files here. */
const FILES = '.jp-FileBrowser:not(.pai-Storage) .jp-DirListing-item[data-isdir="false"]';

export const runsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:run-as-job',
  description: 'Runs a notebook or a script as a job.',
  autoStart: true,
  requires: [ILabHost, IFileBrowserFactory, IDocumentManager, JobsToken, INotebookTracker],
  optional: [ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    { client, trans, language }: ILabHost,
    { tracker }: IFileBrowserFactory,
    documents: IDocumentManager,
    jobs: IJobsModel,
    notebooks: INotebookTracker,
    palette: ICommandPalette | null
  ) => {
    const { commands, serviceManager, shell } = app;

    const open = () => (shell.currentWidget ? documents.contextForWidget(shell.currentWidget)?.path : undefined);
    const pathOf = (args: { path?: unknown; open?: unknown }): string | undefined => {
      if (typeof args.path === 'string') {
        return args.path;
      }
      const selected = tracker.currentWidget?.selectedItems().next().value as Contents.IModel | undefined;
      return args.open === true ? open() : selected?.path;
    };

    commands.addCommand(COMMAND, {
      label: trans.__('Run as a PAI job'),
      caption: trans.__('Run this file from top to bottom on the GPU cluster'),
      icon: args => (args.isPalette ? undefined : paiIcon),
      describedBy: { args: { type: 'object', properties: { path: { type: 'string' }, open: { type: 'boolean' } } } },
      isEnabled: args => canRun(pathOf(args) ?? ''),
      isVisible: args => args.open === true || canRun(pathOf(args) ?? ''),
      execute: async args => {
        const path = pathOf(args);
        if (path === undefined) {
          return;
        }
        try {
          await save(documents, path);
          const job = await runAsJob(serviceManager.contents.localPath(path), client, language, trans);
          if (job?.scheduled) {
            const callback = () => void commands.execute('pai:show-jobs', { page: 'jobs' });
            Notification.success(trans.__('%1 is scheduled.', job.name), {
              autoClose: 10000,
              actions: [{ label: trans.__('Show schedules'), callback }]
            });
          } else if (job !== null) {
            await jobs.refresh();
            const callback = () => void commands.execute('pai:open-job', { name: job.name, user: job.username });
            Notification.success(trans.__('%1 is submitted.', job.name), {
              autoClose: 10000,
              actions: [{ label: trans.__('Watch'), callback }]
            });
          }
        } catch (error) {
          await showErrorMessage(trans.__('The job was not submitted'), error as Error);
        }
      }
    });
    app.contextMenu.addItem({ command: COMMAND, selector: FILES, rank: 2 });
    palette?.addItem({ command: COMMAND, category: trans.__('PAI'), args: { isPalette: true, open: true } });
    notebooks.widgetAdded.connect((_, panel: NotebookPanel) => {
      const button = new CommandToolbarButton({
        commands,
        id: COMMAND,
        args: { path: panel.context.path, toolbar: true },
        label: ''
      });
      panel.toolbar.insertBefore('spacer', 'pai-run', button);
    });
    shell.currentChanged?.connect(() => commands.notifyCommandChanged(COMMAND));
  }
};

/** Write down what is open and not saved: the job gets the file as it is on the disk. */
async function save(documents: IDocumentManager, path: string): Promise<void> {
  const widget = documents.findWidget(path);
  const context = widget ? documents.contextForWidget(widget) : undefined;
  if (context?.model.dirty) {
    await context.save();
  }
}
