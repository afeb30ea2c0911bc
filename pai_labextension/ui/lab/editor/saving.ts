// Saves a job that is no file yet.

import { Dialog, InputDialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { Contents } from '@jupyterlab/services';

import { ITranslation } from '../../console/host';

export const ENDING = '.pai.json';

/**
 * Ask for a name and save a text under it. Resolves with its path; `null` where the person gave up.
 *
 * @param name - that is proposed
 * @param folder - in which it is saved
 */
export async function saveJob(
  text: string,
  name: string,
  folder: string,
  contents: Contents.IManager,
  trans: ITranslation
): Promise<string | null> {
  const answer = await InputDialog.getText({
    title: trans.__('Save the job as a file'),
    label: trans.__('Name of the file, in the folder that the file browser shows'),
    text: `${name}${ENDING}`,
    okLabel: trans.__('Save'),
    cancelLabel: trans.__('Cancel')
  });
  if (!answer.button.accept || !answer.value) {
    return null;
  }
  const given = answer.value.trim();
  const path = PathExt.join(folder, given.endsWith('.json') ? given : `${given}${ENDING}`);
  if ((await exists(path, contents)) && !(await mayReplace(path, trans))) {
    return null;
  }
  try {
    await contents.save(path, { type: 'file', format: 'text', content: text });
    return path;
  } catch (error) {
    await showErrorMessage(trans.__('The job was not saved'), error as Error);
    return null;
  }
}

async function exists(path: string, contents: Contents.IManager): Promise<boolean> {
  try {
    await contents.get(path, { content: false });
    return true;
  } catch {
    return false;
  }
}

async function mayReplace(path: string, trans: ITranslation): Promise<boolean> {
  const { button } = await showDialog({
    title: trans.__('Replace the file?'),
    body: trans.__('There is a file “%1” already.', path),
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Replace') })]
  });
  return button.accept;
}
