// Submits a job once more.

import { showErrorMessage } from '@jupyterlab/apputils';

import { Client, IJobName } from '../../console/data/client';
import { ITranslation } from '../../console/host';

/** Submit the same job under a new name; return that, or `null` where it was refused, which is said. */
export async function runAgain(job: IJobName, client: Client, trans: ITranslation): Promise<IJobName | null> {
  try {
    return await client.runAgain(job);
  } catch (error) {
    await showErrorMessage(trans.__('“%1” was not submitted again', job.name), error as Error);
    return null;
  }
}
