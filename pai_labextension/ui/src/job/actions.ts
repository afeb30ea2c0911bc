// Submits a job once more.

import { showErrorMessage } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { IJobName, JobClient } from './client';

/** Submit the same job under a new name; return that, or `null` where it was refused, which is said. */
export async function runAgain(client: JobClient, trans: TranslationBundle): Promise<IJobName | null> {
  try {
    return await client.runAgain();
  } catch (error) {
    await showErrorMessage(trans.__('“%1” was not submitted again', client.job.name), error as Error);
    return null;
  }
}
