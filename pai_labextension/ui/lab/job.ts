// The plugin: the page of a job, opened by its name and its user, and restored when JupyterLab is loaded again.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { IJobName } from '../console/data/client';
import { IJobsModel, key } from '../console/data/jobs';
import { argumentsOf, ILabHost, JobsToken } from './host';
import { paiIcon } from './icon';
import type { JobTab } from './jobTab';

const COMMAND = 'pai:open-job';
const AGAIN = 'pai:run-again';

/** What both commands take. */
const ARGUMENTS = {
  type: 'object',
  properties: { name: { type: 'string' }, user: { type: 'string' } },
  required: ['name', 'user']
};

export const jobPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:job',
  description: 'Shows what a job does, and what its tasks write and use.',
  autoStart: true,
  requires: [ILabHost, JobsToken],
  optional: [ILayoutRestorer],
  activate: (app: JupyterFrontEnd, host: ILabHost, jobs: IJobsModel, restorer: ILayoutRestorer | null) => {
    const { commands, shell } = app;
    const { trans } = host;
    const tracker = new WidgetTracker<JobTab>({ namespace: 'pai-job' });

    // (of the pages that come back with JupyterLab only the one in view asks)
    let restored = false;
    void app.restored.then(() => {
      restored = true;
    });

    commands.addCommand(COMMAND, {
      label: trans.__('Open a PAI job'),
      caption: trans.__('Show what a job does, and what its tasks write and use'),
      icon: paiIcon,
      describedBy: { args: ARGUMENTS },
      execute: async args => {
        const job = jobOf(args);
        const { JobTab } = await import('./jobTab');
        let tab = tracker.find(one => key(one.model.name) === key(job));
        if (!tab) {
          tab = new JobTab(host, jobs, job);
          if (restored) {
            tab.model.begin();
          }
          shell.add(tab, 'main');
          await tracker.add(tab);
        }
        shell.activateById(tab.id);
        return tab;
      }
    });
    commands.addCommand(AGAIN, {
      label: trans.__('Run a PAI job again'),
      caption: trans.__('Submit the same job under a new name'),
      describedBy: { args: ARGUMENTS },
      execute: async args => {
        const { runAgain } = await import('../console/jobs/ending');
        return runAgain(jobOf(args), jobs, host);
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: COMMAND,
        args: ({ model }) => argumentsOf(model.name),
        name: ({ model }) => key(model.name)
      });
    }
  }
};

function jobOf(args: ReadonlyPartialJSONObject): IJobName {
  return { name: args.name as string, username: args.user as string };
}
