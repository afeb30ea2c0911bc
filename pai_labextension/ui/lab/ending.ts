// Stopping and deleting jobs, one or many: it is asked once, with how many and which.

import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';

import { ITranslation } from '../console/host';
import { button, endable, Ending, reasons, refusal, title, warning } from './endingWords';
import { IJobState } from './jobs';
import { IJobsModel, IRefusal } from './model';

/** Ask whether that is meant, and do it; say which jobs were refused. Return these; `null`: it was not meant. */
export async function end(
  jobs: readonly IJobState[],
  ending: Ending,
  model: IJobsModel,
  trans: ITranslation
): Promise<IRefusal[] | null> {
  const meant = endable(jobs, ending);
  if (meant.length === 0) {
    return null;
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
    return null;
  }
  const refused = await (ending === 'delete' ? model.delete(meant) : model.stop(meant, ending === 'kill'));
  if (refused.length > 0) {
    await showErrorMessage(refusal(refused, meant.length, ending, trans), { message: reasons(refused, trans) });
  }
  return refused;
}
