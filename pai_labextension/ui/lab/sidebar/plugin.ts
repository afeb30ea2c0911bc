// The plugin: the side bar, the command that shows it, and the status-bar item that opens it.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStatusBar } from '@jupyterlab/statusbar';

import { IJob } from '../../console/data/client';
import { JobPorts } from '../../console/access/ports';
import { ILabHost, JobsToken } from '../host';
import { paiIcon } from '../icon';
import { IJobsModel } from '../../console/data/jobs';
import { ClusterModel } from './cluster';
import { QueueModel } from './queue';
import { SchedulesModel } from './schedules';
import { PAGES, Sidebar } from './sidebar';
import { StatusItem } from './status';

const ID = 'pai-sidebar';
const SHOW = 'pai:show-jobs';

export const sidebarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:jobs',
  description: 'The side bar with my jobs, the queue and the cluster; counts the jobs in the status bar.',
  autoStart: true,
  requires: [ILabHost, JobsToken],
  optional: [ICommandPalette, IStatusBar, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    host: ILabHost,
    model: IJobsModel,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
    restorer: ILayoutRestorer | null
  ) => {
    const { commands, shell } = app;
    const { client, trans, language } = host;
    const withTask =
      (command: string) =>
      ({ name, username }: IJob) =>
        void commands.execute(command, { job: name, user: username });
    const sidebar = new Sidebar({
      ...{ host, model, trans, language },
      queue: new QueueModel(client),
      cluster: new ClusterModel(client),
      schedules: new SchedulesModel(client),
      ports: new JobPorts(model, client),
      onNewJob: () => void commands.execute('pai:new-job'),
      onOpen: ({ name, username }) => void commands.execute('pai:open-job', { name, user: username }),
      onOpenRun: (user, name) => void commands.execute('pai:open-job', { name, user }),
      onRunAgain: ({ name, username }) => void commands.execute('pai:run-again', { name, user: username }),
      onClone: ({ name, username }) => void commands.execute('pai:new-job', { from: { name, user: username } }),
      onTerminal: withTask('pai:open-terminal'),
      onConnect: withTask('pai:connect')
    });
    sidebar.id = ID;
    sidebar.title.icon = paiIcon;
    sidebar.title.caption = trans.__('PAI: jobs, queue and cluster');
    shell.add(sidebar, 'left', { rank: 105, type: 'PAI' });
    restorer?.add(sidebar, ID);
    commands.addCommand(SHOW, {
      label: trans.__('Show PAI jobs'),
      caption: trans.__('List my jobs on the GPU cluster'),
      icon: args => (args.isPalette ? undefined : paiIcon),
      describedBy: { args: { type: 'object', properties: { page: { type: 'string', enum: [...PAGES] } } } },
      execute: args => {
        sidebar.turnTo(PAGES.find(page => page === args.page) ?? 'jobs');
        shell.activateById(ID);
      }
    });
    palette?.addItem({ command: SHOW, category: trans.__('PAI'), args: { isPalette: true } });
    statusBar?.registerStatusItem('pai-labextension:jobs', {
      item: new StatusItem(model, trans, () => void commands.execute(SHOW)),
      align: 'left',
      rank: 100,
      // in a narrow window JupyterLab hides items of the usual priority
      priority: 1
    });
  }
};
