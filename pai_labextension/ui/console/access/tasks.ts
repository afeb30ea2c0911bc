// Which tasks of a job run, and what they are called.

import { Client, IJobName, ITask } from '../data/client';
import { JobDetail } from '../generated/types.gen';

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

/** Return a task's place in the routes of the notebook server, encoded: "alice/train/worker-0". */
export function pathOf({ user, job, task }: ITask): string {
  return [user, job, task].map(encodeURIComponent).join('/');
}

/** Name a task for good; no job or role has a `/` in its name. */
export function keyOf({ user, job, task }: ITask): string {
  return `${user}/${job}/${task}`;
}

/** Name a task for people who see many tabs. */
export function titleOf({ job, task }: ITask): string {
  return `${task} · ${job}`;
}
