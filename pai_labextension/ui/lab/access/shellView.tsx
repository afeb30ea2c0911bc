// A tab with a shell of a task: JupyterLab's terminal, and over its lower edge what happened to the connection.

import { ReactWidget } from '@jupyterlab/apputils';
import { Terminal as Service } from '@jupyterlab/services';
import { ITerminal, Terminal } from '@jupyterlab/terminal';
import { ITranslator } from '@jupyterlab/translation';
import { terminalIcon } from '@jupyterlab/ui-components';
import { UUID } from '@lumino/coreutils';
import { Message } from '@lumino/messaging';
import { ISignal, Signal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';
import * as React from 'react';

import { ITask } from '../../console/data/client';
import { TextButton } from '../../console/kit/button';
import { KeptConnection } from './connection';
import { titleOf } from '../../console/access/tasks';
import { ITaskShells, TaskTerminals } from './terminals';

/** What the tab is at: `cut` may come back, `ended` does not, `failed` was never there. */
export type ShellState = 'opening' | 'open' | 'cut' | 'ended' | 'failed';

export interface IShellOptions {
  readonly task: ITask;
  /** Of the shell to go on with; without it a new one is started. */
  readonly name?: string | undefined;
  /** Of the tab, across reloads; a shell has its name only later, and another one may take its place. */
  readonly key?: string | undefined;
  readonly terminals: TaskTerminals;
  /** As JupyterLab's own terminals have them now. */
  readonly settings: () => Partial<ITerminal.IOptions>;
  readonly translator: ITranslator;
}

/** Shows one shell of a task, and when it has ended another one. */
export class ShellView extends Widget {
  constructor(private readonly options: IShellOptions) {
    super();
    this.addClass('pai-Shell');
    this.title.label = titleOf(options.task);
    this.title.caption = `${options.task.user} / ${options.task.job} / ${options.task.task}`;
    this.title.icon = terminalIcon;
    this.title.closable = true;
    this.shells = options.terminals.take(options.task);
    // the shells are listed every few seconds: a view that could not reach the server then tries again
    this.shells.manager.runningChanged.connect(this.comeBack, this);
    this._name = options.name;
    this.key = options.key ?? UUID.uuid4();
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(new ShellBar(this, options.translator));
    void this.open();
  }

  /** Names the tab. */
  readonly key: string;

  get task(): ITask {
    return this.options.task;
  }

  /** The shell's name among those of its task; `undefined` until it is there. */
  get name(): string | undefined {
    return this._name;
  }

  get state(): ShellState {
    return this._state;
  }

  /** Why there is no shell. */
  get reason(): string {
    return this._reason;
  }

  /** Emitted when the state or the name changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** JupyterLab's widget; `null` until it is there. */
  get terminal(): Terminal | null {
    return this._terminal;
  }

  /** Take over settings that have changed. */
  async applySettings(settings: Partial<ITerminal.IOptions>): Promise<void> {
    const terminal = this._terminal;
    await terminal?.ready;
    if (terminal && !terminal.isDisposed) {
      for (const [name, value] of Object.entries(chosen(settings))) {
        terminal.setOption(name as keyof ITerminal.IOptions, value);
      }
    }
  }

  /** Start a shell, or go on with the one of this name. */
  async open(): Promise<void> {
    this.set('opening');
    try {
      const connection = await this.connection();
      if (this.isDisposed) {
        connection?.dispose();
      } else if (connection === null) {
        this.set('ended');
      } else {
        this.attach(new KeptConnection(connection));
      }
    } catch (error) {
      this.set('failed', error instanceof Error ? error.message : String(error));
    }
  }

  /** Start another shell in place of the one that is over. */
  async renew(): Promise<void> {
    this._name = undefined;
    await this.open();
    this.activate();
  }

  /** Try now to reach the shell again. */
  async retry(): Promise<void> {
    await this._terminal?.session.reconnect().catch(() => undefined);
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    const session = this._terminal?.session;
    super.dispose();
    this.shells.manager.runningChanged.disconnect(this.comeBack, this);
    // the terminal ends its shell if that is what JupyterLab's settings say; this ends only the connection
    if (!this._terminal?.getOption('shutdownOnClose')) {
      session?.dispose();
    }
    this.options.terminals.release(this.task);
    Signal.clearData(this);
  }

  protected onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this._terminal?.activate();
  }

  private async connection(): Promise<Service.ITerminalConnection | null> {
    const { manager, client } = this.shells;
    if (this._name === undefined) {
      return manager.startNew();
    }
    const models = await client.listRunning();
    const model = models.find(({ name }) => name === this._name);
    return model ? manager.connectTo({ model }) : null;
  }

  private attach(connection: KeptConnection): void {
    const settings = { ...chosen(this.options.settings()), closeOnExit: false };
    const terminal = new Terminal(connection, settings, this.options.translator);
    // by which JupyterLab's own commands would be in the menu too, which know nothing of this terminal
    terminal.removeClass('jp-Terminal');
    terminal.addClass('pai-Terminal');
    this._terminal?.dispose();
    this._terminal = terminal;
    this._name = connection.name;
    connection.connectionStatusChanged.connect(() => this.follow(connection));
    connection.disposed.connect(() => this._terminal === terminal && this.set('ended'));
    (this.layout as PanelLayout).insertWidget(0, terminal);
    this.set('open');
    void terminal.ready.then(() => {
      if (this.isVisible && this._terminal === terminal && !this.isDisposed) {
        terminal.activate();
      }
    });
  }

  private follow(connection: KeptConnection): void {
    if (this._terminal?.session === connection && !connection.isDisposed) {
      this.set(connection.connectionStatus === 'connected' ? 'open' : 'cut');
    }
  }

  private comeBack(): void {
    if (this._terminal?.session.connectionStatus === 'disconnected' && this._state === 'cut') {
      void this.retry();
    }
  }

  private set(state: ShellState, reason = ''): void {
    this._state = state;
    this._reason = reason;
    if (!this.isDisposed) {
      this._changed.emit();
    }
  }

  private readonly shells: ITaskShells;
  private _terminal: Terminal | null = null;
  private _name: string | undefined;
  private _state: ShellState = 'opening';
  private _reason = '';
  private readonly _changed = new Signal<this, void>(this);
}

/** Of JupyterLab's settings those that are the terminal's own. */
function chosen(settings: Partial<ITerminal.IOptions>): Partial<ITerminal.IOptions> {
  const known = Object.keys(ITerminal.defaultOptions).filter(name => name !== 'initialCommand');
  return Object.fromEntries(
    Object.entries(settings).filter(([name]) => known.includes(name) && name !== 'closeOnExit')
  );
}

/** Says what is the matter, and offers what helps; nothing while the shell is there. */
class ShellBar extends ReactWidget {
  constructor(
    private readonly view: ShellView,
    translator: ITranslator
  ) {
    super();
    this.addClass('pai-Shell-bar');
    this.trans = translator.load('pai_labextension');
    view.changed.connect(() => this.update());
  }

  protected render(): React.ReactElement {
    const { view, trans } = this;
    const button = (label: string, onClick: () => void, accept = false) => (
      <TextButton accept={accept} onClick={onClick}>
        {label}
      </TextButton>
    );
    const words: Record<ShellState, string> = {
      opening: trans.__('Opening a terminal in %1 …', view.task.task),
      open: '',
      cut: trans.__('The connection is cut; trying to get back. What runs in this terminal goes on.'),
      ended: trans.__('This terminal has ended.'),
      failed: view.reason
    };
    return (
      <div
        role={view.state === 'failed' ? 'alert' : 'status'}
        className="pai-Shell-news"
        hidden={view.state === 'open'}
      >
        <span>{words[view.state]}</span>
        {view.state === 'cut' && button(trans.__('Try now'), () => void view.retry())}
        {view.state === 'failed' && button(trans.__('Try again'), () => void view.open(), true)}
        {view.state === 'ended' && button(trans.__('New terminal'), () => void view.renew(), true)}
        {(view.state === 'ended' || view.state === 'failed') && button(trans.__('Close'), () => view.parent?.close())}
      </div>
    );
  }

  private readonly trans;
}
