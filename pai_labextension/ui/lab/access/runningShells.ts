// Shells of tasks in JupyterLab's list of what runs: those whose tab was closed are found again there.

import { IRunningSessions } from '@jupyterlab/running';
import { terminalIcon } from '@jupyterlab/ui-components';
import { ISignal, Signal } from '@lumino/signaling';

import { ITranslation } from '../../console/host';
import { titleOf } from '../../console/access/tasks';
import { IShell, TaskTerminals } from './terminals';

/** Lists shells; one is opened with a click, and ended with another. */
export class RunningShells implements IRunningSessions.IManager {
  constructor(
    private readonly terminals: TaskTerminals,
    private readonly trans: ITranslation,
    private readonly onOpen: (shell: IShell) => void
  ) {
    terminals.changed.connect(() => this._runningChanged.emit());
    this.name = trans.__('Terminals in PAI tasks');
  }

  readonly name: string;

  get runningChanged(): ISignal<this, void> {
    return this._runningChanged;
  }

  running(): IRunningSessions.IRunningItem[] {
    return this.terminals.shells.map(shell => ({
      label: () => this.trans.__('%1 (terminal %2)', titleOf(shell.task), shell.name),
      icon: () => terminalIcon,
      open: () => this.onOpen(shell),
      shutdown: () => void this.terminals.shutdown(shell)
    }));
  }

  shutdownAll(): void {
    this.terminals.shells.forEach(shell => void this.terminals.shutdown(shell));
  }

  refreshRunning(): void {
    void this.terminals.refresh();
  }

  private readonly _runningChanged = new Signal<this, void>(this);
}
