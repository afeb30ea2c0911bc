// What all ways into tasks share: whom to ask, and which task is meant.

import { IStateDB } from '@jupyterlab/statedb';
import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ReadonlyPartialJSONObject, Token } from '@lumino/coreutils';

import { Client, ITask } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { ILabHost, JobsToken } from '../host';
import { IJobsModel, isOpen } from '../../console/data/jobs';
import { chooseTask, tasksOf } from './choose';
import { RecentTasks } from './recent';
import { tasksOfJob } from '../../console/access/tasks';

export interface IAccess {
  /**
   * Find the task that a command means: the one its arguments name, or the only one, or the one that the person
   * chooses (`title` and `accept` are words of the dialog); `null` where they choose none. Error: none runs.
   */
  find(args: ReadonlyPartialJSONObject, title: string, accept: string): Promise<ITask | null>;
}

export const IAccess = new Token<IAccess>('pai-labextension:IAccess', 'The ways into the tasks of running jobs.');

class Access implements IAccess {
  constructor(
    private readonly client: Client,
    private readonly jobs: IJobsModel,
    private readonly recent: RecentTasks,
    private readonly trans: ITranslation
  ) {}

  async find(args: ReadonlyPartialJSONObject, title: string, accept: string): Promise<ITask | null> {
    const { user, job, task } = args;
    if (typeof user === 'string' && typeof job === 'string') {
      if (typeof task === 'string') {
        return { user, job, task };
      }
      const tasks = await tasksOfJob({ username: user, name: job }, this.client);
      if (tasks.length === 0) {
        throw new Error(this.trans.__('No task of “%1” runs.', job));
      }
      return chooseTask(tasks, this.recent, title, accept, this.trans);
    }
    await this.jobs.refresh();
    if (this.jobs.error) {
      throw new Error(this.jobs.error);
    }
    const running = (this.jobs.jobs ?? []).filter(isOpen);
    return chooseTask(await tasksOf(running, this.client), this.recent, title, accept, this.trans);
  }
}

export const accessPlugin: JupyterFrontEndPlugin<IAccess> = {
  id: 'pai-labextension:access',
  description: 'The ways into the tasks of running jobs.',
  autoStart: true,
  requires: [ILabHost, JobsToken],
  optional: [IStateDB],
  provides: IAccess,
  activate: (_, { client, trans }: ILabHost, jobs: IJobsModel, state: IStateDB | null) =>
    new Access(client, jobs, new RecentTasks(state), trans)
};
