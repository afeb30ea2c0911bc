// The plugin: terminals in tasks, with JupyterLab's own settings; they are there again when the page is.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import {
  Clipboard,
  ICommandPalette,
  IThemeManager,
  MainAreaWidget,
  showErrorMessage,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITerminal } from '@jupyterlab/terminal';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { copyIcon, pasteIcon, terminalIcon } from '@jupyterlab/ui-components';

import { ITask } from '../../console/data/client';
import { ILabHost } from '../host';
import { IAccess } from './access';
import { RunningShells } from './runningShells';
import { ShellView } from './shellView';
import { keyOf } from '../../console/access/tasks';
import { IShell, TaskTerminals } from './terminals';

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
    { transport, trans }: ILabHost,
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
      const content = new ShellView({ task, name, key, terminals, settings: () => settings.values, translator });
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
          await showErrorMessage(trans.__('No terminal could be opened'), error as Error);
          return undefined;
        }
      }
    });
    addClipboardCommands(app, tracker, translator);
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

function addClipboardCommands(
  { commands, contextMenu }: JupyterFrontEnd,
  tracker: WidgetTracker<ShellWidget>,
  translator: ITranslator
): void {
  const trans = translator.load('pai_labextension');
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
