// Which task is meant: the only one there is, or the one that is chosen from a list.

import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { Client, IJob, ITask } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { RecentTasks } from './recent';
import { IRunningTask, keyOf, tasksOfJob } from '../../console/access/tasks';

/** Tasks that are seen without scrolling. */
const ROWS = 10;

/** Find the running tasks of these jobs; jobs that cannot be asked about have none, unless that is so of all. */
export async function tasksOf(jobs: readonly IJob[], client: Client): Promise<IRunningTask[]> {
  const answers = await Promise.allSettled(jobs.map(job => tasksOfJob(job, client)));
  const failed = answers.find(answer => answer.status === 'rejected');
  if (failed && answers.every(answer => answer.status === 'rejected')) {
    throw failed.reason;
  }
  return answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []));
}

/**
 * Ask which of the tasks is meant, and remember it; `null` where it was given up.
 *
 * @param title - what is done with it
 * @param accept - the word on the button
 */
export async function chooseTask(
  tasks: readonly ITask[],
  recent: RecentTasks,
  title: string,
  accept: string,
  trans: ITranslation
): Promise<ITask | null> {
  const [first, ...others] = tasks;
  if (first === undefined) {
    throw new Error(trans.__('No task of yours runs.'));
  }
  let task: ITask = first;
  if (others.length > 0) {
    const chooser = new TaskChooser(tasks, (await recent.newestOf(tasks)) ?? first, trans);
    const answer = await new Dialog({
      title,
      body: chooser,
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: accept })],
      focusNodeSelector: 'select'
    }).launch();
    if (!answer.button.accept) {
      return null;
    }
    task = chooser.getValue();
  }
  await recent.add(task);
  return task;
}

class TaskChooser extends ReactWidget {
  constructor(
    private readonly tasks: readonly ITask[],
    private chosen: ITask,
    private readonly trans: ITranslation
  ) {
    super();
    this.addClass('pai-TaskChooser');
  }

  getValue(): ITask {
    return this.chosen;
  }

  protected render(): React.ReactElement {
    const { tasks, trans } = this;
    const jobs = new Map<string, ITask[]>();
    for (const task of tasks) {
      const name = `${task.user}/${task.job}`;
      jobs.set(name, [...(jobs.get(name) ?? []), task]);
    }
    return (
      <label>
        {trans.__('Task')}
        <select
          className="pai-Input"
          size={Math.min(ROWS, tasks.length + jobs.size)}
          defaultValue={keyOf(this.chosen)}
          onChange={event => {
            this.chosen = tasks.find(task => keyOf(task) === event.target.value) ?? this.chosen;
          }}
        >
          {[...jobs].map(([name, ofJob]) => (
            <optgroup key={name} label={ofJob[0]!.job}>
              {ofJob.map(task => (
                <option key={keyOf(task)} value={keyOf(task)}>
                  {task.task}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
    );
  }
}
