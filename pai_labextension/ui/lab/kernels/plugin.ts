// The plugin: notebooks say where their kernels are that run as jobs.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ISessionContext } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import { ILabHost } from '../host';
import { KernelBanner } from './banner';
import { KernelsModel } from './model';
import { isJobKernel } from './specs';

export const kernelsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:kernels',
  description: 'Says in a notebook why its kernel waits for a GPU, or has given it back.',
  autoStart: true,
  requires: [ILabHost, INotebookTracker],
  activate: (app: JupyterFrontEnd, { client, trans }: ILabHost, notebooks: INotebookTracker) => {
    const { kernelspecs } = app.serviceManager;
    const model = new KernelsModel(client);
    const shown = new Set<NotebookPanel>();

    const settle = (panel: NotebookPanel, jobs: boolean) => {
      if (jobs !== shown.has(panel)) {
        if (jobs) {
          shown.add(panel);
        } else {
          shown.delete(panel);
        }
      }
      if (jobs || shown.size === 0) {
        model.setShown(jobs);
      }
    };

    notebooks.widgetAdded.connect((_, panel) => {
      const context = panel.sessionContext;
      const banner = new KernelBanner(
        model,
        {
          cancel: () => context.shutdown(),
          again: async name => {
            // the session of a kernel that is gone takes no other one
            await context.shutdown();
            await context.changeKernel({ name });
          }
        },
        trans
      );
      panel.contentHeader.insertWidget(0, banner);
      const follow = (context: ISessionContext) => {
        const kernel = context.session?.kernel;
        if (kernel) {
          // one that has ended is told of until there is another
          banner.kernelId = kernel.id;
          settle(panel, isJobKernel(kernelspecs.specs?.kernelspecs[kernel.name]));
        }
      };
      context.kernelChanged.connect(follow);
      context.statusChanged.connect(follow);
      panel.disposed.connect(() => settle(panel, false));
      follow(context);
    });
  }
};
