// What one does with a job, asked once more where it cannot be undone.

import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { IJobName } from './client';
import { JobModel } from './model';

/** Stop a job, if the person means it. */
export async function stopJob(job: JobModel, isOwnServer: boolean, trans: TranslationBundle): Promise<void> {
  const { name } = job.name;
  const answer = await showDialog({
    title: trans.__('Stop “%1”?', name),
    body: isOwnServer
      ? trans.__('This is the notebook server you are using. It ends at once, with all its kernels.')
      : trans.__('Its tasks end at once and its GPUs become free. Logs are kept. This cannot be undone.'),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep it') }),
      Dialog.warnButton({ label: trans.__('Stop the job') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  try {
    await job.client.stop();
    await job.refresh();
  } catch (error) {
    await showErrorMessage(trans.__('“%1” was not stopped', name), error as Error);
  }
}

/** Delete a job that has ended, if the person means it; return whether it is gone. */
export async function deleteJob(job: JobModel, trans: TranslationBundle): Promise<boolean> {
  const { name } = job.name;
  const answer = await showDialog({
    title: trans.__('Delete “%1”?', name),
    body: trans.__('Its logs and its history go with it. Results in the storage stay. This cannot be undone.'),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep it') }),
      Dialog.warnButton({ label: trans.__('Delete the job') })
    ]
  });
  if (!answer.button.accept) {
    return false;
  }
  try {
    await job.client.remove();
    return true;
  } catch (error) {
    await showErrorMessage(trans.__('“%1” was not deleted', name), error as Error);
    return false;
  }
}

/** Submit the same job under a new name; return that, or `null` where it was refused. */
export async function runAgain(job: JobModel, trans: TranslationBundle): Promise<IJobName | null> {
  try {
    return await job.client.runAgain();
  } catch (error) {
    await showErrorMessage(trans.__('“%1” was not submitted again', job.name.name), error as Error);
    return null;
  }
}
