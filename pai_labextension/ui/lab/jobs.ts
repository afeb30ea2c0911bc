// What can be said about a list of jobs.

import { IJob, JobState } from '../console/data/client';

/** A job, and how it is. */
export type IJobState = Pick<IJob, 'name' | 'username' | 'state' | 'subState'>;

/** Return whether a job is not over yet. */
export function isActive(job: IJobState): boolean {
  return job.state === 'WAITING' || job.state === 'RUNNING';
}

/** Return whether the tasks of a job are being stopped, and have some time left to end by themselves. */
export function isEnding(job: Pick<IJob, 'subState'>): boolean {
  return job.subState === 'ENDING';
}

/** Return whether one can go into a job: its tasks run, and are not being stopped. */
export function isOpen(job: IJob): boolean {
  return job.state === 'RUNNING' && !isEnding(job);
}

/** Count the jobs in a state. */
export function count(jobs: readonly IJob[], state: JobState): number {
  return jobs.filter(job => job.state === state).length;
}

/** Return the waiting jobs, the one that has waited longest first. */
export function waiting(jobs: readonly IJob[]): IJob[] {
  return jobs.filter(job => job.state === 'WAITING').sort((a, b) => a.createdTime - b.createdTime);
}

/** Name a job for good: two users may have jobs of one name. */
export function key(job: Pick<IJob, 'name' | 'username'>): string {
  return `${job.username}~${job.name}`;
}
