// The plugin: the page of a job, opened by its name and its user, and restored when JupyterLab is loaded again.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';

import { IJobName } from '../../console/data/client';
import { end, runAgain } from '../../console/jobs/ending';
import { argumentsOf, ILabHost, JobsToken } from '../host';
import { paiIcon } from '../icon';
import { IJobsModel } from '../../console/data/jobs';
import { LogModel } from './log/model';
import { JobModel } from './model';
import { JobPage } from './page';

const COMMAND = 'pai:open-job';
const AGAIN = 'pai:run-again';
const EDITOR = 'pai:new-job';

export const jobPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:job',
  description: 'Shows what a job does, and what its tasks write and use.',
  autoStart: true,
  requires: [ILabHost, JobsToken],
  optional: [ILayoutRestorer],
  activate: (app: JupyterFrontEnd, host: ILabHost, jobs: IJobsModel, restorer: ILayoutRestorer | null) => {
    const { commands, shell } = app;
    const { client, trans, language } = host;
    const tracker = new WidgetTracker<MainAreaWidget<JobPage>>({ namespace: 'pai-job' });

    // (of the pages that come back with JupyterLab only the one in view asks)
    let restored = false;
    void app.restored.then(() => {
      restored = true;
    });
    const show = (job: IJobName) => {
      void jobs.refresh();
      void commands.execute(COMMAND, argumentsOf(job));
    };

    const make = async (job: IJobName): Promise<MainAreaWidget<JobPage>> => {
      const model = new JobModel(client, job);
      const target = { job: job.name, user: job.username };
      const content: JobPage = new JobPage({
        model,
        log: new LogModel(client, job),
        host,
        access: client,
        listed: () => jobs.jobs?.find(({ username, name }) => username === job.username && name === job.name),
        trans,
        language,
        isOwnServer: jobs.isOwnServer(job),
        storageRoot: PageConfig.getOption('paiStorageUri'), // written by the server extension
        onTerminal: () => void commands.execute('pai:open-terminal', target),
        onConnect: () => void commands.execute('pai:connect', target),
        onClone: () => void commands.execute(EDITOR, { from: argumentsOf(job) }),
        onOpen: show,
        onResults: path => void commands.execute('pai:open-storage', { path }),
        onEnd: async ending => {
          const { state, subState } = model.known!.detail.jobStatus; // (what is not known has no buttons)
          const refused = await end([{ ...job, state, subState }], ending, jobs, host);
          return refused?.length === 0;
        },
        onDeleted: () => {
          void jobs.refresh();
          widget.dispose();
        }
      });
      const widget = new MainAreaWidget({ content });
      widget.id = `pai-job-${keyOf(job)}`;
      widget.title.label = job.name;
      widget.title.caption = trans.__('PAI job “%1” of %2', job.name, job.username);
      widget.title.icon = paiIcon;
      widget.title.closable = true;
      widget.toolbar.hide(); // its buttons are beside its heading
      return widget;
    };

    commands.addCommand(COMMAND, {
      label: trans.__('Open a PAI job'),
      caption: trans.__('Show what a job does, and what its tasks write and use'),
      icon: paiIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: { name: { type: 'string' }, user: { type: 'string' } },
          required: ['name', 'user']
        }
      },
      execute: async args => {
        const job = { name: args.name as string, username: args.user as string };
        const isThere = () => tracker.find(({ content }) => keyOf(content.job) === keyOf(job));
        let widget = isThere();
        if (!widget) {
          const made = await make(job);
          widget = isThere() ?? made;
          if (widget === made) {
            if (restored) {
              made.content.begin();
            }
            shell.add(widget, 'main');
            await tracker.add(widget);
          } else {
            made.dispose();
          }
        }
        shell.activateById(widget.id);
        return widget;
      }
    });
    commands.addCommand(AGAIN, {
      label: trans.__('Run a PAI job again'),
      caption: trans.__('Submit the same job under a new name'),
      describedBy: {
        args: {
          type: 'object',
          properties: { name: { type: 'string' }, user: { type: 'string' } },
          required: ['name', 'user']
        }
      },
      execute: async args => {
        const other = await runAgain({ name: args.name as string, username: args.user as string }, host);
        if (other) {
          show(other);
        }
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: COMMAND,
        args: ({ content }) => argumentsOf(content.job),
        name: ({ content }) => keyOf(content.job)
      });
    }
  }
};

function keyOf({ username, name }: IJobName): string {
  return `${username}/${name}`;
}
