// "New PAI job": a fresh Python notebook whose first cell shows the job form, already run.

import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { KernelSpec } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';

import { pythonKernel } from './kernels';

/** The first cell of the notebook. */
export const FORM_CELL = 'from pai_labextension import JobForm\n\nJobForm()';

/**
 * Open the form; Error where no kernel can show it.
 *
 * @param cwd - the folder for the notebook; empty: the one the file browser shows
 */
export async function newJob(
  commands: CommandRegistry,
  specs: KernelSpec.IManager,
  cwd: string,
  trans: TranslationBundle
): Promise<NotebookPanel> {
  await specs.ready;
  const kernelName = pythonKernel(specs.specs);
  if (kernelName === undefined) {
    throw new Error(trans.__('The job form needs a Python kernel, and this server has none.'));
  }
  const panel: NotebookPanel = await commands.execute('notebook:create-new', { cwd, kernelName });
  await panel.context.ready;
  const notebook = panel.content;
  notebook.activeCellIndex = 0;
  notebook.activeCell?.model.sharedModel.setSource(FORM_CELL);
  await panel.sessionContext.ready;
  await NotebookActions.run(notebook, panel.sessionContext);
  await panel.context.save();
  return panel;
}
