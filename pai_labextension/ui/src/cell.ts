// A fresh Python notebook whose first cell is already run.

import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { KernelSpec } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';

import { pythonKernel } from './pythonKernel';

/**
 * Open a notebook and run a cell in it; Error where no kernel can.
 *
 * @param cwd - the folder for the notebook; empty: the one the file browser shows
 */
export async function openCell(
  source: string,
  commands: CommandRegistry,
  specs: KernelSpec.IManager,
  cwd: string,
  trans: TranslationBundle
): Promise<NotebookPanel> {
  await specs.ready;
  const kernelName = pythonKernel(specs.specs);
  if (kernelName === undefined) {
    throw new Error(trans.__('This needs a Python kernel, and this server has none.'));
  }
  const panel = (await commands.execute('notebook:create-new', { cwd, kernelName })) as NotebookPanel;
  await panel.context.ready;
  const notebook = panel.content;
  notebook.activeCellIndex = 0;
  notebook.activeCell?.model.sharedModel.setSource(source);
  await panel.sessionContext.ready;
  await NotebookActions.run(notebook, panel.sessionContext);
  await panel.context.save();
  return panel;
}
