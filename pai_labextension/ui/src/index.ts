// The plugins: the person's jobs, "New PAI job", the side bar, the storage, the ways into tasks.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, showErrorMessage } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { accessPlugin } from './access/access';
import { connectPlugin } from './access/connectPlugin';
import { terminalPlugin } from './access/terminalPlugin';
import { Api } from './api';
import { openCell } from './cell';
import { connectionLostPlugin, memoryPlugin } from './ended/plugin';
import { paiIcon } from './icon';
import { jobPlugin } from './job/plugin';
import { kernelsPlugin } from './kernels/plugin';
import { IJobsModel, JobsModel } from './model';
import { endedJobsPlugin, runsPlugin } from './runs/plugin';
import { sessionPlugin } from './session/plugin';
import { sidebarPlugin } from './sidebar/plugin';
import { FORM_CELL } from './sources';
import { storagePlugin } from './storage/plugin';
import { submitPlugin } from './submit/plugin';
import { timesPlugin } from './times';

const DOMAIN = 'pai_labextension';

namespace CommandIDs {
  export const newJob = 'pai:new-job';
}

const modelPlugin: JupyterFrontEndPlugin<IJobsModel> = {
  id: 'pai-labextension:model',
  description: 'Knows the jobs of the person in front of it.',
  autoStart: true,
  optional: [ITranslator],
  provides: IJobsModel,
  activate: (app, translator: ITranslator | null) => {
    const known = translator ?? nullTranslator;
    return new JobsModel(
      new Api(app.serviceManager.serverSettings, known.languageCode, known.load(DOMAIN)),
      PageConfig.getOption('paiJobName') // written by the server extension
    );
  }
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

export default [
  modelPlugin,
  newJobPlugin,
  sidebarPlugin,
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
