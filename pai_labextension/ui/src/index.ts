// The plugins: the person's jobs, "New PAI job", the status-bar item and the list, the storage, the ways into tasks.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, showErrorMessage, WidgetTracker } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { ILauncher } from '@jupyterlab/launcher';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { accessPlugin, IAccess } from './access/access';
import { connectPlugin } from './access/connectPlugin';
import { JobPorts } from './access/jobPorts';
import { terminalPlugin } from './access/terminalPlugin';
import { Api, IJob } from './api';
import { openCell } from './cell';
import { connectionLostPlugin, memoryPlugin } from './ended/plugin';
import { paiIcon } from './icon';
import { jobPlugin } from './job/plugin';
import { kernelsPlugin } from './kernels/plugin';
import { IJobsModel, JobsModel } from './model';
import { JobsPanel } from './panel';
import { Polled } from './polled';
import { QueueModel } from './queue';
import { endedJobsPlugin, runsPlugin } from './runs/plugin';
import { sessionPlugin } from './session/plugin';
import { FORM_CELL } from './sources';
import { StatusItem } from './status';
import { storagePlugin } from './storage/plugin';
import { submitPlugin } from './submit/plugin';
import { timesPlugin } from './times';

const DOMAIN = 'pai_labextension';

namespace CommandIDs {
  export const newJob = 'pai:new-job';
  export const openJob = 'pai:open-job';
  export const showJobs = 'pai:show-jobs';
}

/** Ask in the language of the person. */
function makeApi(app: JupyterFrontEnd, translator: ITranslator | null): Api {
  const known = translator ?? nullTranslator;
  return new Api(app.serviceManager.serverSettings, known.languageCode, known.load(DOMAIN));
}

const modelPlugin: JupyterFrontEndPlugin<IJobsModel> = {
  id: 'pai-labextension:model',
  description: 'Knows the jobs of the person in front of it.',
  autoStart: true,
  optional: [ITranslator],
  provides: IJobsModel,
  activate: (app, translator: ITranslator | null) =>
    new JobsModel(
      makeApi(app, translator),
      PageConfig.getOption('paiJobName') // written by the server extension
    )
};

const newJobPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:new-job',
  description: 'Opens the job form, from the launcher and the command palette.',
  autoStart: true,
  optional: [ICommandPalette, ILauncher, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const command = CommandIDs.newJob;
    app.commands.addCommand(command, {
      label: trans.__('New PAI job'),
      caption: trans.__('Open a form to submit a job to the GPU cluster'),
      icon: args => (args.isPalette ? undefined : paiIcon),
      describedBy: { args: { type: 'object', properties: { cwd: { type: 'string' } } } },
      execute: async args => {
        const cwd = typeof args.cwd === 'string' ? args.cwd : '';
        try {
          return await openCell(FORM_CELL, app.commands, app.serviceManager.kernelspecs, cwd, trans);
        } catch (error) {
          await showErrorMessage(trans.__('The job form could not be opened'), error as Error);
          return undefined;
        }
      }
    });
    palette?.addItem({ command, category: trans.__('PAI'), args: { isPalette: true } });
    // right below the notebooks, and first of its kind
    launcher?.add({ command, category: trans.__('PAI'), categoryRank: 10, rank: 1 });
  }
};

const jobsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:jobs',
  description: 'Lists the jobs, and counts them in the status bar.',
  autoStart: true,
  requires: [IJobsModel, IAccess],
  optional: [ICommandPalette, IStatusBar, ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IJobsModel,
    access: IAccess,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null
  ) => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const language = (translator ?? nullTranslator).languageCode.replace('_', '-');
    const tracker = new WidgetTracker<MainAreaWidget<JobsPanel>>({ namespace: 'pai-jobs' });
    const command = CommandIDs.showJobs;
    commands.addCommand(command, {
      label: trans.__('Show PAI jobs'),
      caption: trans.__('List my jobs on the GPU cluster'),
      icon: args => (args.isPalette ? undefined : paiIcon),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        let widget = tracker.currentWidget;
        if (!widget || widget.isDisposed) {
          const api = makeApi(app, translator);
          const queue = new QueueModel(api);
          const machines = new Polled('machines', () => api.nodes());
          const onNewJob = () => void commands.execute(CommandIDs.newJob);
          const onWatch = ({ name, username }: IJob) =>
            void commands.execute(CommandIDs.openJob, { name, user: username });
          const ports = new JobPorts(model, access.client);
          const doWith =
            (id: string) =>
            ({ name, username }: IJob) =>
              void commands.execute(id, { job: name, user: username });
          const onTerminal = doWith('pai:open-terminal');
          const onConnect = doWith('pai:connect');
          const content = new JobsPanel({
            ...{ model, queue, machines, ports, trans, language },
            ...{ onNewJob, onWatch, onTerminal, onConnect }
          });
          content.disposed.connect(() => {
            queue.dispose();
            machines.dispose();
            ports.dispose();
          });
          widget = new MainAreaWidget({ content });
          widget.id = 'pai-jobs';
          widget.title.label = trans.__('PAI jobs');
          widget.title.icon = paiIcon;
          widget.title.closable = true;
          widget.toolbar.hide(); // the list has its buttons beside its heading
          shell.add(widget, 'main');
          await tracker.add(widget);
        }
        shell.activateById(widget.id);
        return widget;
      }
    });
    palette?.addItem({ command, category: trans.__('PAI'), args: { isPalette: true } });
    if (restorer) {
      void restorer.restore(tracker, { command, name: () => 'pai-jobs' });
    }
    statusBar?.registerStatusItem('pai-labextension:jobs', {
      item: new StatusItem(model, trans, () => void commands.execute(command)),
      align: 'left',
      rank: 100
    });
  }
};

export default [
  modelPlugin,
  newJobPlugin,
  jobsPlugin,
  jobPlugin,
  storagePlugin,
  submitPlugin,
  runsPlugin,
  endedJobsPlugin,
  accessPlugin,
  terminalPlugin,
  connectPlugin,
  kernelsPlugin,
  timesPlugin,
  sessionPlugin,
  connectionLostPlugin,
  memoryPlugin
];
