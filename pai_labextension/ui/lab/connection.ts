// What is said when the server does not answer or know who asks, and when a kernel was ended for its memory.

import {
  ConnectionLost as jupyterlabsConnectionLost,
  IConnectionLost,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import { URLExt } from '@jupyterlab/coreutils';
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { ServerConnection } from '@jupyterlab/services';

import { tellAnswered } from '../console/data/store';
import { confirm } from '../console/kit/dialog';
import { ConnectionLost } from '../console/session/ending';
import { lostMemory, lostSentence } from '../console/session/kernels';
import { Banner } from './banner';
import { ILabHost } from './host';
import { askHub, hubPlace, reachingServer, startAddress } from './hub';

/** In the place of `@jupyterlab/hub-extension:connectionlost`, which offers to restart a server that runs. */
export const connectionLostPlugin: JupyterFrontEndPlugin<IConnectionLost> = {
  id: 'pai-labextension:connection-lost',
  description: 'Says that the server runs on while the connection is lost, or how it has ended.',
  autoStart: true,
  requires: [ILabHost],
  provides: IConnectionLost,
  activate: (app: JupyterFrontEnd, host: ILabHost) => {
    const place = hubPlace();
    if (place === null) {
      return jupyterlabsConnectionLost;
    }
    const { serverSettings } = app.serviceManager;
    const banner = new Banner();
    const lost = new ConnectionLost(
      {
        askHub: () => askHub(place),
        isBack: () =>
          ServerConnection.makeRequest(URLExt.join(serverSettings.baseUrl, 'api/status'), {}, serverSettings).then(
            answer => answer.ok,
            () => false
          ),
        warn: message => banner.say(message),
        unwarn: () => banner.say(null),
        cheer: message => {
          Notification.success(message);
          tellAnswered();
          // these ask less and less often while nobody answers
          const { sessions, terminals } = app.serviceManager;
          void Promise.allSettled([sessions.refreshRunning(), terminals.refreshRunning()]);
        },
        confirm: question => confirm(host, question),
        leave: page => window.location.assign(startAddress(place, page))
      },
      host.trans
    );
    return () => lost.tell();
  }
};

export const reachingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:reaching',
  description: 'Keeps JupyterLab from believing a proxy that does not know its server yet.',
  autoStart: true,
  activate: ({ serviceManager: { serverSettings } }: JupyterFrontEnd) => {
    if (hubPlace() !== null) {
      // (JupyterLab's file browser asks with this object, and offers no other way to come between)
      Object.assign(serverSettings, { fetch: reachingServer(serverSettings.fetch) });
    }
  }
};

export const memoryPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:memory',
  description: 'Says in a notebook that its kernel was ended because the memory was not enough.',
  autoStart: true,
  requires: [ILabHost, INotebookTracker],
  activate: (_: JupyterFrontEnd, { client, trans }: ILabHost, tracker: INotebookTracker) => {
    const cells = new RunningCells();
    NotebookActions.executionScheduled.connect((__, { notebook, cell }) => cells.begin(notebook, cell));
    NotebookActions.executed.connect((__, { notebook, cell, success }) => cells.end(notebook, cell, success));

    async function tell(panel: NotebookPanel): Promise<void> {
      // it is no longer the cell that runs once the kernel is back
      const cell = cells.of(panel.content);
      const kernel = panel.sessionContext.session?.kernel?.id;
      const lost = kernel === undefined ? null : await lostMemory(() => client.memory(kernel));
      if (lost === null) {
        return;
      }
      const text = lostSentence(lost, trans);
      cell?.outputs.add({ output_type: 'stream', name: 'stderr', text: `${text}\n` });
      Notification.error(`${panel.title.label}: ${text}`, { autoClose: false });
    }

    tracker.widgetAdded.connect((__, panel) => {
      panel.sessionContext.statusChanged.connect((___, status) => {
        if (status === 'autorestarting' || status === 'dead') {
          void tell(panel);
        }
      });
    });
  }
};

/** The cells that run, or were the last to: what a kernel that was ended has not finished. */
class RunningCells {
  begin(notebook: object, cell: Cell): void {
    this.cells.set(notebook, cell);
  }

  /** The cell in which a notebook's kernel was; `undefined` where it ran none. */
  of(notebook: object): ICodeCellModel | undefined {
    const cell = this.cells.get(notebook);
    return cell?.model.type === 'code' && !cell.isDisposed ? (cell.model as ICodeCellModel) : undefined;
  }

  /** Note that a cell came to its end by itself. */
  end(notebook: object, cell: Cell, success: boolean): void {
    if (success && this.cells.get(notebook) === cell) {
      this.cells.delete(notebook);
    }
  }

  private readonly cells = new WeakMap<object, Cell>();
}
