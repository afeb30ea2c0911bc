// The running tasks of jobs: what they are called, and which of them is meant.

import * as React from 'react';

import { Client, IJob, IJobName, ITask } from '../data/client';
import { IJobsModel, isOpen } from '../data/jobs';
import { JobDetail } from '../generated/types.gen';
import { IHost } from '../host';
import { DialogButtons, openDialog } from '../kit/dialog';

/** A task that runs; `ports` are the labels that its role lists. */
export interface IRunningTask extends ITask {
  readonly ports: readonly string[];
}

/** Ports that every role has, listed or not. */
const EVERYWHERE = new Set(['http', 'ssh']);

/** List the tasks of a job that run, in the order of its roles. */
export function runningTasks(job: IJobName, detail: Pick<JobDetail, 'taskRoles'>): IRunningTask[] {
  return Object.entries(detail.taskRoles).flatMap(([role, { taskStatuses }]) =>
    taskStatuses
      .filter(status => status.taskState === 'RUNNING')
      .map(status => ({
        user: job.username,
        job: job.name,
        task: `${role}-${status.taskIndex}`,
        ports: Object.keys(status.containerPorts).filter(label => !EVERYWHERE.has(label))
      }))
  );
}

/** Ask for the tasks of a job that run. */
export async function tasksOfJob(job: IJobName, client: Client): Promise<IRunningTask[]> {
  return runningTasks(job, await client.detail(job));
}

/** Name a task for good; no job or role has a `/` in its name. */
export function keyOf({ user, job, task }: ITask): string {
  return `${user}/${job}/${task}`;
}

/** Name a task for people who see many tabs. */
export function titleOf({ job, task }: ITask): string {
  return `${task} · ${job}`;
}

/** Find the running tasks of these jobs; jobs that cannot be asked about have none, unless that is so of all. */
async function tasksOf(jobs: readonly IJob[], client: Client): Promise<IRunningTask[]> {
  const answers = await Promise.allSettled(jobs.map(job => tasksOfJob(job, client)));
  const failed = answers.find(answer => answer.status === 'rejected');
  if (failed && answers.every(answer => answer.status === 'rejected')) {
    throw failed.reason;
  }
  return answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []));
}

/** Finds the task that a person means. */
export class TaskFinder {
  constructor(
    private readonly host: Pick<IHost, 'client' | 'root' | 'trans'>,
    private readonly jobs: IJobsModel,
    private readonly recent: RecentTasks
  ) {}

  /**
   * Find the task that is named, or the only one that runs, of the job or of all, or the one that the person chooses;
   * `null` where they choose none. Error: none runs.
   *
   * @param title - what is done with it
   * @param accept - the word on the button
   */
  async find({ user, job, task }: Partial<ITask>, title: string, accept: string): Promise<ITask | null> {
    const { client, trans } = this.host;
    if (user !== undefined && job !== undefined) {
      if (task !== undefined) {
        return { user, job, task };
      }
      const tasks = await tasksOfJob({ username: user, name: job }, client);
      if (tasks.length === 0) {
        throw new Error(trans.__('No task of “%1” runs.', job));
      }
      return this.choose(tasks, title, accept);
    }
    await this.jobs.refresh();
    if (this.jobs.error) {
      throw new Error(this.jobs.error);
    }
    return this.choose(await tasksOf((this.jobs.jobs ?? []).filter(isOpen), client), title, accept);
  }

  /** Ask which of the tasks is meant, where there are several, and remember it. */
  private async choose(tasks: readonly ITask[], title: string, accept: string): Promise<ITask | null> {
    const { root, trans } = this.host;
    const [first, ...others] = tasks;
    if (first === undefined) {
      throw new Error(trans.__('No task of yours runs.'));
    }
    let task: ITask | null = first;
    if (others.length > 0) {
      const before = (await this.recent.newestOf(tasks)) ?? first;
      const words = { task: trans.__('Task'), accept, cancel: trans.__('Cancel') };
      task = await openDialog<ITask | null>(root, title, answer => (
        <TaskChooser tasks={tasks} before={before} words={words} onAnswer={answer} />
      ));
    }
    if (task) {
      await this.recent.add(task);
    }
    return task;
  }
}

/** Tasks that are seen without scrolling. */
const ROWS = 10;

function TaskChooser(props: {
  tasks: readonly ITask[];
  before: ITask;
  words: { task: string; accept: string; cancel: string };
  onAnswer: (task: ITask | null) => void;
}): React.ReactElement {
  const { tasks, before, words, onAnswer } = props;
  const [chosen, setChosen] = React.useState(before);
  const jobs = new Map<string, ITask[]>();
  for (const task of tasks) {
    const name = `${task.user}/${task.job}`;
    jobs.set(name, [...(jobs.get(name) ?? []), task]);
  }
  return (
    <form
      method="dialog"
      className="pai-TaskChooser"
      onSubmit={event => {
        event.preventDefault();
        onAnswer(chosen);
      }}
    >
      <label>
        {words.task}
        <select
          className="pai-Input"
          data-focus
          size={Math.min(ROWS, tasks.length + jobs.size)}
          value={keyOf(chosen)}
          onChange={event => setChosen(tasks.find(task => keyOf(task) === event.target.value) ?? chosen)}
          onKeyDown={event => event.key === 'Enter' && onAnswer(chosen)}
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
      <DialogButtons accept={words.accept} cancel={words.cancel} onCancel={() => onAnswer(null)} />
    </form>
  );
}

const KEY = 'pai-labextension:recent-tasks';
/** Choices that are kept. */
const KEPT = 50;

/** Keeps values from one page to the next; JupyterLab's state database is one. */
export interface IKept {
  fetch(key: string): Promise<unknown>;
  save(key: string, value: string[]): Promise<unknown>;
}

/** Remembers which tasks were chosen, the newest first; without a place to keep them until the page is left. */
export class RecentTasks {
  constructor(private readonly state: IKept | null) {}

  /** Return the one of these tasks that was chosen last; `undefined` where none of them ever was. */
  async newestOf<T extends ITask>(tasks: readonly T[]): Promise<T | undefined> {
    for (const key of await this.read()) {
      const found = tasks.find(task => keyOf(task) === key);
      if (found) {
        return found;
      }
    }
    return undefined;
  }

  async add(task: ITask): Promise<void> {
    const others = (await this.read()).filter(key => key !== keyOf(task));
    this.keys = [keyOf(task), ...others].slice(0, KEPT);
    await this.state?.save(KEY, [...this.keys]);
  }

  private async read(): Promise<readonly string[]> {
    if (this.keys === null) {
      const saved = await this.state?.fetch(KEY).catch(() => undefined);
      this.keys = Array.isArray(saved) ? saved.filter(key => typeof key === 'string') : [];
    }
    return this.keys;
  }

  private keys: readonly string[] | null = null;
}
