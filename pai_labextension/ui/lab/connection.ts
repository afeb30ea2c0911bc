// What is said when the server does not answer or know who asks, and when a kernel was ended for its memory.

import {
  ConnectionLost as jupyterlabsConnectionLost,
  IConnectionLost,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import { ServerConnection } from '@jupyterlab/services';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { tellAnswered } from '../console/data/store';
import { speaking } from '../console/data/speaking';
import { ConnectionLost } from '../console/session/ending';
import { lostMemory, lostSentence } from '../console/session/kernels';
import { ILabHost } from './host';
import { askHub, hubPlace, reachingServer, startAddress } from './hub';

const DOMAIN = 'pai_labextension';

/**
 * A line above everything else, of one sentence at a time. JupyterLab loads what shows its notifications when the first
 * one comes: from a server that does not answer then.
 */
class Banner extends Widget {
  constructor() {
    super();
    this.addClass('pai-Banner');
    this.node.setAttribute('role', 'status');
  }

  /** Show a sentence in place of what is shown. */
  say(message: string): void {
    if (this.node.textContent !== message) {
      this.node.textContent = message;
    }
    if (!this.isAttached) {
      Widget.attach(this, document.body);
    }
  }

  /** Take it away. */
  hush(): void {
    if (this.isAttached) {
      Widget.detach(this);
    }
  }
}

/** In the place of `@jupyterlab/hub-extension:connectionlost`, which offers to restart a server that runs. */
export const connectionLostPlugin: JupyterFrontEndPlugin<IConnectionLost> = {
  id: 'pai-labextension:connection-lost',
  description: 'Says that the server runs on while the connection is lost, or how it has ended.',
  autoStart: true,
  requires: [JupyterFrontEnd.IPaths],
  optional: [ITranslator],
  provides: IConnectionLost,
  activate: (app: JupyterFrontEnd, _paths: JupyterFrontEnd.IPaths, translator: ITranslator | null) => {
    const place = hubPlace();
    if (place === null) {
      return jupyterlabsConnectionLost;
    }
    const known = translator ?? nullTranslator;
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
        unwarn: () => banner.hush(),
        cheer: message => {
          Notification.success(message);
          // these ask less and less often while nobody answers
          const { sessions, terminals } = app.serviceManager;
          void Promise.allSettled([sessions.refreshRunning(), terminals.refreshRunning()]);
        },
        confirm: async ({ title, body, accept, reject }) => {
          const buttons = [Dialog.cancelButton({ label: reject }), Dialog.okButton({ label: accept })];
          return (await showDialog({ title, body, buttons })).button.accept;
        },
        leave: page => window.location.assign(startAddress(place, page))
      },
      known.load(DOMAIN)
    );
    return () => lost.tell();
  }
};

export const speakingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:speaking',
  description: 'Says in a sentence that the server does not answer, or that the login has expired.',
  autoStart: true,
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, translator: ITranslator | null) => {
    const { serverSettings } = app.serviceManager;
    const { fetch } = serverSettings;
    const banner = new Banner();
    const ways = {
      isLoggedIn: async ({ headers }: Request) => {
        const token = headers.get('Authorization');
        const me = new Request(URLExt.join(serverSettings.baseUrl, 'api/me'), {
          headers: token === null ? {} : { Authorization: token }
        });
        return (await fetch(me)).status !== 403;
      },
      show: (message: string | null) => (message === null ? banner.hush() : banner.say(message)),
      answered: tellAnswered
    };
    const reaching = hubPlace() === null ? fetch : reachingServer(fetch);
    // (all of JupyterLab asks with this object, and offers no other way to come between)
    Object.assign(serverSettings, { fetch: speaking(reaching, ways, (translator ?? nullTranslator).load(DOMAIN)) });
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
