// The plugins: the person's jobs, "New PAI job", the side bar, the storage, the ways into tasks.

import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { PageConfig } from '@jupyterlab/coreutils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { accessPlugin } from './access/access';
import { connectPlugin } from './access/connectPlugin';
import { terminalPlugin } from './access/terminalPlugin';
import { Api } from './api';
import { editorPlugin } from './editor/plugin';
import { connectionLostPlugin, memoryPlugin, speakingPlugin } from './ended/plugin';
import { jobPlugin } from './job/plugin';
import { kernelsPlugin } from './kernels/plugin';
import { IJobsModel, JobsModel } from './model';
import { endedJobsPlugin } from './notifications/plugin';
import { runsPlugin } from './runs/plugin';
import { sessionPlugin } from './session/plugin';
import { sidebarPlugin } from './sidebar/plugin';
import { storagePlugin } from './storage/plugin';
import { submitPlugin } from './submit/plugin';
import { timesPlugin } from './times';

const DOMAIN = 'pai_labextension';

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

export default [
  modelPlugin,
  editorPlugin,
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
  speakingPlugin,
  connectionLostPlugin,
  memoryPlugin
];
