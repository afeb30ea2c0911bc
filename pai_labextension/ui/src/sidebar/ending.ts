// Stopping and deleting jobs, one or many: it is asked once, with how many and which.

import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { IJob } from '../api';
import { IJobsModel } from '../model';
import { button, endable, Ending, reasons, refusal, title, warning } from './endingWords';

/** Ask whether that is meant, and do it; say which jobs were refused. Return whether it was done. */
export async function end(
  jobs: readonly IJob[],
  ending: Ending,
  model: IJobsModel,
  trans: TranslationBundle
): Promise<boolean> {
  const meant = endable(jobs, ending);
  if (meant.length === 0) {
    return false;
  }
  const answer = await showDialog({
    title: title(meant, ending, trans),
    body: warning(meant, ending, model, trans),
    buttons: [
      Dialog.cancelButton({ label: trans._n('Keep it', 'Keep them', meant.length) }),
      Dialog.warnButton({ label: button(meant, ending, trans) })
    ]
  });
  if (!answer.button.accept) {
    return false;
  }
  const refused = await (ending === 'stop' ? model.stop(meant) : model.delete(meant));
  if (refused.length > 0) {
    await showErrorMessage(refusal(refused, meant.length, ending, trans), { message: reasons(refused, trans) });
  }
  return true;
}
