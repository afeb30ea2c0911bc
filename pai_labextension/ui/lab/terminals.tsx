// Terminals in tasks, with JupyterLab's own settings; they are there again when the page is.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Clipboard, ICommandPalette, IThemeManager, MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { IRunningSessionManagers, IRunningSessions } from '@jupyterlab/running';
import { Terminal as Service } from '@jupyterlab/services';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITerminal, Terminal } from '@jupyterlab/terminal';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { copyIcon, pasteIcon, terminalIcon } from '@jupyterlab/ui-components';
import { UUID } from '@lumino/coreutils';
import { Message } from '@lumino/messaging';
import { ISignal, Signal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';
import * as React from 'react';

import { keyOf, titleOf } from '../console/access/tasks';
import { ITask } from '../console/data/client';
import { ITranslation } from '../console/host';
import { ShellNews, ShellState } from '../console/access/shell';
import { showError } from '../console/kit/dialog';
import { IAccess } from './access';
import { ILabHost } from './host';
import { Mount } from './mount';
import { IShell, ITaskShells, KeptConnection, TaskTerminals } from './taskTerminals';

const SETTINGS = '@jupyterlab/terminal-extension:plugin';
const SHELLS = '.pai-Terminal';

namespace CommandIDs {
  export const open = 'pai:open-terminal';
  export const copy = 'pai:copy-from-terminal';
  export const paste = 'pai:paste-into-terminal';
}

type ShellWidget = MainAreaWidget<ShellView>;

export const terminalPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:terminals',
  description: 'Terminals in the tasks of running jobs.',
  autoStart: true,
  requires: [ILabHost, IAccess],
  optional: [
    ICommandPalette,
    ILauncher,
    ILayoutRestorer,
    ISettingRegistry,
    IThemeManager,
    IRunningSessionManagers,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    host: ILabHost,
    access: IAccess,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    restorer: ILayoutRestorer | null,
    registry: ISettingRegistry | null,
    themes: IThemeManager | null,
    running: IRunningSessionManagers | null,
    someTranslator: ITranslator | null
  ) => {
    const { commands, shell } = app;
    const { transport, trans } = host;
    const translator = someTranslator ?? nullTranslator;
    const terminals = new TaskTerminals(transport, trans);
    const tracker = new WidgetTracker<ShellWidget>({ namespace: 'pai-terminals' });
    const settings = new TerminalSettings(registry, themes, tracker);

    const show = async (task: ITask, name?: string, key?: string): Promise<ShellWidget> => {
      const there = tracker.find(
        ({ content }) => name !== undefined && content.name === name && keyOf(content.task) === keyOf(task)
      );
      if (there) {
        shell.activateById(there.id);
        return there;
      }
      const content = new ShellView({ host, task, name, key, terminals, settings: () => settings.values, translator });
      const widget: ShellWidget = new MainAreaWidget({ content });
      widget.id = `pai-terminal-${content.key}`;
      widget.title.closable = true;
      widget.toolbar.hide();
      content.changed.connect(() => void tracker.save(widget));
      shell.add(widget, 'main', { type: 'Terminal' });
      await tracker.add(widget);
      shell.activateById(widget.id);
      return widget;
    };

    commands.addCommand(CommandIDs.open, {
      label: args => (args.isPalette ? trans.__('Open a terminal in a PAI task') : trans.__('Terminal in a PAI task')),
      caption: trans.__('Open a terminal in a task of a running job or notebook server'),
      icon: args => (args.isPalette ? undefined : terminalIcon),
      describedBy: {
        args: {
          type: 'object',
          properties: {
            user: { type: 'string' },
            job: { type: 'string' },
            task: { type: 'string' },
            name: { type: 'string', description: 'of a shell to go on with' },
            key: { type: 'string', description: 'of the tab' }
          }
        }
      },
      execute: async args => {
        try {
          const task = await access.find(args, trans.__('Open a terminal'), trans.__('Open'));
          return task && (await settings.ready.then(() => show(task, text(args.name), text(args.key))));
        } catch (error) {
          await showError(host, trans.__('No terminal could be opened'), error);
          return undefined;
        }
      }
    });
    addClipboardCommands(app, tracker, trans);
    palette?.addItem({ command: CommandIDs.open, category: trans.__('PAI'), args: { isPalette: true } });
    launcher?.add({ command: CommandIDs.open, category: trans.__('PAI'), rank: 2 });
    running?.add(new RunningShells(terminals, trans, ({ task, name }: IShell) => void show(task, name)));
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.open,
        args: ({ content }) => ({ ...content.task, name: content.name ?? null, key: content.key }),
        name: ({ content }) => content.key,
        when: app.serviceManager.ready
      });
    }
  }
};

/** How JupyterLab's own terminals look and behave; ours follow. */
class TerminalSettings {
  /** Resolved when `values` are known, in any case. */
  readonly ready: Promise<void>;

  constructor(
    registry: ISettingRegistry | null,
    themes: IThemeManager | null,
    private readonly tracker: WidgetTracker<ShellWidget>
  ) {
    this.ready = this.follow(registry).catch(() => undefined); // their plugin may be disabled
    themes?.themeChanged.connect(() => this.apply({ theme: this.values.theme ?? 'inherit' }));
  }

  get values(): Partial<ITerminal.IOptions> {
    return this._values;
  }

  private async follow(registry: ISettingRegistry | null): Promise<void> {
    const settings = await registry?.load(SETTINGS);
    const take = () => {
      this._values = settings?.composite ?? {};
    };
    take();
    settings?.changed.connect(() => {
      take();
      this.apply(this._values);
    });
  }

  private apply(values: Partial<ITerminal.IOptions>): void {
    this.tracker.forEach(({ content }) => void content.applySettings(values));
  }

  private _values: Partial<ITerminal.IOptions> = {};
}

/** The shells of tasks in JupyterLab's list of what runs, where those whose tab was closed are found again. */
class RunningShells implements IRunningSessions.IManager {
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

function addClipboardCommands(
  { commands, contextMenu }: JupyterFrontEnd,
  tracker: WidgetTracker<ShellWidget>,
  trans: ITranslation
): void {
  const terminal = () => tracker.currentWidget?.content.terminal;
  const noArguments = { describedBy: { args: { type: 'object', properties: {} } } };
  commands.addCommand(CommandIDs.copy, {
    ...noArguments,
    label: trans.__('Copy'),
    icon: copyIcon.bindprops({ stylesheet: 'menuItem' }),
    isEnabled: () => terminal()?.hasSelection() ?? false,
    execute: () => Clipboard.copyToSystem(terminal()?.getSelection() ?? '')
  });
  commands.addCommand(CommandIDs.paste, {
    ...noArguments,
    label: trans.__('Paste'),
    icon: pasteIcon.bindprops({ stylesheet: 'menuItem' }),
    isEnabled: () => terminal() !== null,
    execute: async () => {
      const written = await navigator.clipboard.readText();
      terminal()?.paste(written);
      terminal()?.activate();
    }
  });
  contextMenu.addItem({ command: CommandIDs.copy, selector: SHELLS, rank: 1 });
  contextMenu.addItem({ command: CommandIDs.paste, selector: SHELLS, rank: 2 });
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

interface IShellOptions {
  readonly host: ILabHost;
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

/**
 * Shows one shell of a task, and when it has ended another one: JupyterLab's terminal, and over its lower edge what
 * happened to the connection.
 */
class ShellView extends Widget {
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
    const news = new Mount(options.host, () => <News view={this} />);
    news.addClass('pai-Shell-bar');
    this.changed.connect(() => news.update());
    layout.addWidget(news);
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

/** Says what is the matter with a terminal. */
function News({ view }: { view: ShellView }): React.ReactElement {
  return (
    <ShellNews
      task={view.task.task}
      state={view.state}
      reason={view.reason}
      onRetry={() => void view.retry()}
      onOpen={() => void view.open()}
      onRenew={() => void view.renew()}
      onClose={() => view.parent?.close()}
    />
  );
}
