// The plugin: "Submit to PAI with this folder's code" on job files in the file browser.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { showErrorMessage } from '@jupyterlab/apputils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { Contents } from '@jupyterlab/services';

import { ILabHost, JobsToken } from '../host';
import { paiIcon } from '../icon';
import { IJobsModel } from '../../console/data/jobs';
import { submitWithCode } from './dialog';

const COMMAND = 'pai:submit-with-code';
/** Files of the notebook server that may be jobs; those of the storage are no files here. */
const JOB_FILES = ['json', 'pai-job'].map(
  type => `.jp-FileBrowser:not(.pai-Storage) .jp-DirListing-item[data-file-type="${type}"]`
);

export const submitPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:submit-with-code',
  description: 'Submits a job file with the code that is beside it.',
  autoStart: true,
  requires: [ILabHost, IFileBrowserFactory, JobsToken],
  activate: (app: JupyterFrontEnd, { client, trans }: ILabHost, { tracker }: IFileBrowserFactory, jobs: IJobsModel) => {
    const { commands, serviceManager } = app;
    commands.addCommand(COMMAND, {
      label: trans.__('Submit to PAI with this folder’s code'),
      icon: paiIcon,
      describedBy: { args: { type: 'object', properties: { path: { type: 'string' } } } },
      execute: async args => {
        const selected = tracker.currentWidget?.selectedItems().next().value as Contents.IModel | undefined;
        const path = typeof args.path === 'string' ? args.path : selected?.path;
        if (path === undefined) {
          return;
        }
        try {
          const job = await submitWithCode({ path: serviceManager.contents.localPath(path) }, client, trans);
          if (job !== null) {
            await jobs.refresh();
            await commands.execute('pai:show-jobs');
          }
        } catch (error) {
          await showErrorMessage(trans.__('The job was not submitted'), error as Error);
        }
      }
    });
    for (const selector of JOB_FILES) {
      app.contextMenu.addItem({ command: COMMAND, selector, rank: 2 });
    }
  }
};
