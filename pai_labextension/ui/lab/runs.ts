// The plugins: "Run as a PAI job" on notebooks and scripts, in the file browser and in a notebook's toolbar, and
// "Submit to PAI with this folder's code" on job files.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Contents } from '@jupyterlab/services';
import { CommandToolbarButton } from '@jupyterlab/ui-components';

import { canRun, IJobsModel } from '../console/data/jobs';
import { showError } from '../console/kit/dialog';
import { ILabHost, JobsToken } from './host';
import { paiIcon } from './icon';

const RUN = 'pai:run-as-job';
const SUBMIT = 'pai:submit-with-code';
/** Files of the notebook server; those of the storage are no files here. */
const FILES = '.jp-FileBrowser:not(.pai-Storage) .jp-DirListing-item';
/** ms for which it is told what came of it. */
const TOLD = 10_000;

export const runsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:run-as-job',
  description: 'Runs a notebook or a script as a job.',
  autoStart: true,
  requires: [ILabHost, IFileBrowserFactory, IDocumentManager, JobsToken, INotebookTracker],
  optional: [ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    host: ILabHost,
    { tracker }: IFileBrowserFactory,
    documents: IDocumentManager,
    jobs: IJobsModel,
    notebooks: INotebookTracker,
    palette: ICommandPalette | null
  ) => {
    const { commands, serviceManager, shell } = app;
    const { places, trans } = host;

    const open = () => (shell.currentWidget ? documents.contextForWidget(shell.currentWidget)?.path : undefined);
    const pathOf = (args: { path?: unknown; open?: unknown }): string | undefined => {
      if (typeof args.path === 'string') {
        return args.path;
      }
      return args.open === true ? open() : selectedPath(tracker);
    };
    const tell = (message: string, label: string, callback: () => void) =>
      Notification.success(message, { autoClose: TOLD, actions: [{ label, callback }] });

    commands.addCommand(RUN, {
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
          const { runAsJob } = await import('../console/submit/run');
          await save(documents, path);
          const job = await runAsJob(serviceManager.contents.localPath(path), host);
          if (job?.scheduled) {
            tell(trans.__('%1 is scheduled.', job.name), trans.__('Show schedules'), () =>
              places.open({ page: 'jobs' })
            );
          } else if (job !== null) {
            await jobs.refresh();
            tell(trans.__('%1 is submitted.', job.name), trans.__('Watch'), () => places.open({ page: 'job', job }));
          }
        } catch (error) {
          await showError(host, trans.__('The job was not submitted'), error);
        }
      }
    });
    app.contextMenu.addItem({ command: RUN, selector: `${FILES}[data-isdir="false"]`, rank: 2 });
    palette?.addItem({ command: RUN, category: trans.__('PAI'), args: { isPalette: true, open: true } });
    notebooks.widgetAdded.connect((_, panel: NotebookPanel) => {
      const button = new CommandToolbarButton({
        commands,
        id: RUN,
        args: { path: panel.context.path, toolbar: true },
        label: ''
      });
      panel.toolbar.insertBefore('spacer', 'pai-run', button);
    });
    shell.currentChanged?.connect(() => commands.notifyCommandChanged(RUN));
  }
};

export const submitPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:submit-with-code',
  description: 'Submits a job file with the code that is beside it.',
  autoStart: true,
  requires: [ILabHost, IFileBrowserFactory, JobsToken],
  activate: (app: JupyterFrontEnd, host: ILabHost, { tracker }: IFileBrowserFactory, jobs: IJobsModel) => {
    const { commands, serviceManager } = app;
    const { places, trans } = host;
    commands.addCommand(SUBMIT, {
      label: trans.__('Submit to PAI with this folder’s code'),
      icon: paiIcon,
      describedBy: { args: { type: 'object', properties: { path: { type: 'string' } } } },
      execute: async args => {
        const path = typeof args.path === 'string' ? args.path : selectedPath(tracker);
        if (path === undefined) {
          return;
        }
        try {
          const { submitWithCode } = await import('../console/submit/code');
          if (await submitWithCode({ path: serviceManager.contents.localPath(path) }, host)) {
            await jobs.refresh();
            places.open({ page: 'jobs' });
          }
        } catch (error) {
          await showError(host, trans.__('The job was not submitted'), error);
        }
      }
    });
    for (const type of ['json', 'pai-job']) {
      app.contextMenu.addItem({ command: SUBMIT, selector: `${FILES}[data-file-type="${type}"]`, rank: 2 });
    }
  }
};

/** Return what is selected in the file browser. */
function selectedPath(tracker: IFileBrowserFactory['tracker']): string | undefined {
  const selected = tracker.currentWidget?.selectedItems().next().value as Contents.IModel | undefined;
  return selected?.path;
}

/** Write down what is open and not saved: the job gets the file as it is on the disk. */
async function save(documents: IDocumentManager, path: string): Promise<void> {
  const widget = documents.findWidget(path);
  const context = widget ? documents.contextForWidget(widget) : undefined;
  if (context?.model.dirty) {
    await context.save();
  }
}
