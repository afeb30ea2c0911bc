// The ways into the tasks of running jobs: which task a command means, and “Connect”.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { IStateDB } from '@jupyterlab/statedb';
import { ReadonlyPartialJSONObject, Token } from '@lumino/coreutils';
import * as React from 'react';

import { keyOf, RecentTasks, TaskFinder, titleOf } from '../console/access/tasks';
import { ITask } from '../console/data/client';
import { IJobsModel } from '../console/data/jobs';
import { showError } from '../console/kit/dialog';
import { ILabHost, JobsToken } from './host';
import { paiIcon } from './icon';
import { late, Mount } from './mount';

export interface IAccess {
  /**
   * Find the task that a command means: the one its arguments name, or the only one, or the one that the person
   * chooses (`title` and `accept` are words of the dialog); `null` where they choose none. Error: none runs.
   */
  find(args: ReadonlyPartialJSONObject, title: string, accept: string): Promise<ITask | null>;
}

export const IAccess = new Token<IAccess>('pai-labextension:IAccess', 'The ways into the tasks of running jobs.');

export const accessPlugin: JupyterFrontEndPlugin<IAccess> = {
  id: 'pai-labextension:access',
  description: 'The ways into the tasks of running jobs.',
  autoStart: true,
  requires: [ILabHost, JobsToken],
  optional: [IStateDB],
  provides: IAccess,
  activate: (_, host: ILabHost, jobs: IJobsModel, state: IStateDB | null) => {
    const finder = new TaskFinder(host, jobs, new RecentTasks(state));
    return {
      find: ({ user, job, task }, title, accept) => {
        const named = { user, job, task };
        const texts = Object.entries(named).filter(([, value]) => typeof value === 'string');
        return finder.find(Object.fromEntries(texts), title, accept);
      }
    };
  }
};

const COMMAND = 'pai:connect';

const Connect = late(async () => (await import('../console/access/connect')).Connect);

class ConnectTab extends Mount {
  constructor(
    host: ILabHost,
    readonly task: ITask
  ) {
    super(host, () => React.createElement(Connect, { task }));
  }
}

export const connectPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:connect',
  description: 'Says how to reach a task with ssh, editors and other programs.',
  autoStart: true,
  requires: [ILabHost, IAccess],
  optional: [ICommandPalette, ILayoutRestorer],
  activate: (
    { commands, shell }: JupyterFrontEnd,
    host: ILabHost,
    access: IAccess,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ) => {
    const { trans } = host;
    const tracker = new WidgetTracker<MainAreaWidget<ConnectTab>>({ namespace: 'pai-connect' });

    const show = async (task: ITask): Promise<MainAreaWidget<ConnectTab>> => {
      let widget = tracker.find(({ content }) => keyOf(content.task) === keyOf(task));
      if (!widget) {
        const content = new ConnectTab(host, task);
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
          await showError(host, trans.__('The task cannot be reached'), error);
          return undefined;
        }
      }
    });
    palette?.addItem({ command: COMMAND, category: trans.__('PAI'), args: { isPalette: true } });
    if (restorer) {
      void restorer.restore(tracker, {
        command: COMMAND,
        args: ({ content }) => ({ ...content.task }),
        name: ({ content }) => keyOf(content.task)
      });
    }
  }
};
