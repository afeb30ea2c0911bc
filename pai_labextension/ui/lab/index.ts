// The plugins: the person's jobs, "New PAI job", the side bar, the storage, the ways into tasks.

import { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { IJobsModel, JobsModel } from '../console/data/jobs';
import { accessPlugin, connectPlugin } from './access';
import { connectionLostPlugin, memoryPlugin, reachingPlugin } from './connection';
import { editorPlugin } from './editor';
import { hostPlugin, ILabHost, JobsToken } from './host';
import { jobPlugin } from './job';
import { sidebarPlugin } from './jobs';
import { kernelsPlugin } from './kernels';
import { endedJobsPlugin, sessionPlugin } from './notifications';
import { runsPlugin, submitPlugin } from './runs';
import { storagePlugin } from './storage';
import { terminalPlugin } from './terminals';
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
  reachingPlugin,
  connectionLostPlugin,
  memoryPlugin
];
