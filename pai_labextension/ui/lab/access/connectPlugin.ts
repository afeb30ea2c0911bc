// The plugin: “Connect”, how to reach a task with programs of one's own.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, showErrorMessage, WidgetTracker } from '@jupyterlab/apputils';

import { ITask } from '../../console/data/client';
import { ILabHost } from '../host';
import { paiIcon } from '../icon';
import { IAccess } from './access';
import { ConnectModel } from './connectModel';
import { ConnectPanel } from './connectPanel';
import { keyOf, titleOf } from '../../console/access/tasks';

const COMMAND = 'pai:connect';

export const connectPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:connect',
  description: 'Says how to reach a task with ssh, editors and other programs.',
  autoStart: true,
  requires: [ILabHost, IAccess],
  optional: [ICommandPalette, ILayoutRestorer],
  activate: (
    { commands, shell }: JupyterFrontEnd,
    { client, trans, language }: ILabHost,
    access: IAccess,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ) => {
    const tracker = new WidgetTracker<MainAreaWidget<ConnectPanel>>({ namespace: 'pai-connect' });

    const show = async (task: ITask): Promise<MainAreaWidget<ConnectPanel>> => {
      let widget = tracker.find(({ content }) => keyOf(content.model.task) === keyOf(task));
      if (!widget) {
        const onTerminal = () => void commands.execute('pai:open-terminal', { ...task });
        const model = new ConnectModel(task, client);
        const content = new ConnectPanel({ model, trans, language, onTerminal });
        widget = new MainAreaWidget({ content });
        widget.id = `pai-connect-${keyOf(task)}`;
        widget.title.label = trans.__('Connect: %1', titleOf(task));
        widget.title.icon = paiIcon;
        widget.title.closable = true;
        widget.toolbar.hide(); // its buttons are beside its heading
        shell.add(widget, 'main');
        await tracker.add(widget);
      }
      shell.activateById(widget.id);
      return widget;
    };

    commands.addCommand(COMMAND, {
      label: trans.__('Connect to a PAI task'),
      caption: trans.__('SSH, VS Code, PyCharm and other programs: how they reach a task'),
      icon: args => (args.isPalette ? undefined : paiIcon),
      describedBy: {
        args: {
          type: 'object',
          properties: { user: { type: 'string' }, job: { type: 'string' }, task: { type: 'string' } }
        }
      },
      execute: async args => {
        try {
          const task = await access.find(args, trans.__('Connect to a PAI task'), trans.__('Connect'));
          return task && (await show(task));
        } catch (error) {
          await showErrorMessage(trans.__('The task cannot be reached'), error as Error);
          return undefined;
        }
      }
    });
    palette?.addItem({ command: COMMAND, category: trans.__('PAI'), args: { isPalette: true } });
    if (restorer) {
      void restorer.restore(tracker, {
        command: COMMAND,
        args: ({ content }) => ({ ...content.model.task }),
        name: ({ content }) => keyOf(content.model.task)
      });
    }
  }
};
