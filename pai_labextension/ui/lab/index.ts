// The plugins: the person's jobs, "New PAI job", the side bar, the storage, the ways into tasks.

import { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { accessPlugin, connectPlugin } from './access';
import { terminalPlugin } from './terminals';
import { editorPlugin } from './editor/plugin';
import { connectionLostPlugin, memoryPlugin, speakingPlugin } from './ended/plugin';
import { hostPlugin, ILabHost, JobsToken } from './host';
import { jobPlugin } from './job';
import { kernelsPlugin } from './kernels/plugin';
import { IJobsModel, JobsModel } from '../console/data/jobs';
import { endedJobsPlugin } from './notifications/plugin';
import { runsPlugin } from './runs/plugin';
import { sessionPlugin } from './session/plugin';
import { sidebarPlugin } from './jobs';
import { storagePlugin } from './storage';
import { submitPlugin } from './submit/plugin';
import { timesPlugin } from './times';

const modelPlugin: JupyterFrontEndPlugin<IJobsModel> = {
  id: 'pai-labextension:model',
  description: 'Knows the jobs of the person in front of it.',
  autoStart: true,
  requires: [ILabHost],
  provides: JobsToken,
  activate: (_, { client, facts }: ILabHost) => new JobsModel(client, facts.ownServer)
};

export default [
  hostPlugin,
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
