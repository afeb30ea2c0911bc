// What can be said about one job: how it ended, how long something took, where its results are.

import { IAttemptTask } from '../../console/data/client';
import { AttemptInfo, JobDetail, JobStatus, TaskStatus } from '../../console/generated/types.gen';
import { ITranslation } from '../../console/host';

/** A task of an attempt as a row of the table. */
export interface ITaskRow extends IAttemptTask {
  readonly key: string;
  readonly status: TaskStatus;
}

/** What a job did for how long (ms since the epoch). */
export interface ISpan {
  readonly kind: 'WAITING' | 'STARTING' | 'RUNNING';
  readonly begin: number;
  readonly end: number;
}

/** List the tasks of an attempt in the order of its roles. */
export function tasksOf(taskRoles: JobDetail['taskRoles'], attempt: number): ITaskRow[] {
  return Object.entries(taskRoles).flatMap(([role, { taskStatuses }]) =>
    taskStatuses.map(status => ({
      role,
      index: status.taskIndex,
      attempt,
      key: `${role}-${status.taskIndex}`,
      status
    }))
  );
}

/** Count the GPUs in a bit map of their numbers. */
export function gpuCount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest > 0; rest = Math.floor(rest / 2)) {
    count += rest % 2;
  }
  return count;
}

/** Say how long something took, in two units at most. */
export function durationWords(ms: number, trans: ITranslation): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [days, hours, minutes] = [86_400, 3600, 60].map(unit => Math.floor(seconds / unit)) as [number, number, number];
  if (days > 0) {
    return trans.__('%1 d %2 h', days, hours % 24);
  }
  if (hours > 0) {
    return trans.__('%1 h %2 min', hours, minutes % 60);
  }
  return minutes > 0 ? trans.__('%1 min %2 s', minutes, seconds % 60) : trans.__('%1 s', seconds);
}

/** Say with which number something ended, and what the exit table calls that. */
export function exitWords(code: number | null, spec: JobStatus['appExitSpec'], trans: ITranslation): string {
  if (code === null) {
    return '';
  }
  // of a code that is the command's own the table has no row; parts of OpenPAI are no business of anybody's here
  const phrase = spec?.code === code && code !== 0 ? spec.phrase.replace(/_BY_(DOCKER|DISKCLEANER)$/, '') : '';
  return phrase ? trans.__('%1 (%2)', code, phrase) : String(code);
}

/** Say why a job ended, in the sentences that are known of it, each once; empty where it has not. */
export function endSentences({ appExitDiagnostics, appExitMessages }: JobStatus): string[] {
  const told = [appExitDiagnostics, appExitMessages.container, appExitMessages.runtime];
  const sentences = [...new Set(told.filter((text): text is string => Boolean(text)))];
  // what is said of the job names the task, and has in it what is said of the task
  return sentences.filter(one => !sentences.some(other => other !== one && other.includes(one)));
}

/** Return since when a job is in its state (ms since the epoch). */
export function since(status: JobStatus, attempts: readonly AttemptInfo[]): number {
  if (status.completedTime !== null) {
    return status.completedTime;
  }
  const last = attempts.at(-1);
  if (status.state === 'RUNNING') {
    return last?.launchedTime ?? status.appLaunchedTime ?? status.createdTime;
  }
  return last?.completedTime ?? last?.createdTime ?? status.createdTime;
}

/** Return what a job did from its submission until now, or until its end. */
export function spansOf(status: JobStatus, attempts: readonly AttemptInfo[], now: number): ISpan[] {
  const spans: ISpan[] = [];
  let before = status.createdTime;
  const add = (kind: ISpan['kind'], end: number) => {
    if (end > before) {
      spans.push({ kind, begin: before, end });
      before = end;
    }
  };
  for (const attempt of attempts) {
    const end = attempt.completedTime ?? status.completedTime ?? now;
    add('WAITING', attempt.createdTime);
    add('STARTING', attempt.launchedTime ?? end);
    if (attempt.launchedTime !== null) {
      add('RUNNING', end);
    }
  }
  add('WAITING', status.completedTime ?? now);
  return spans;
}

/**
 * Return where in the storage the results of a job are; `null` where that depends on the task, or is elsewhere.
 *
 * @param root - what the cluster calls its storage
 */
export function resultsPath(outputDir: unknown, user: string, name: string, root: string): string | null {
  if (typeof outputDir !== 'string' || outputDir === '') {
    return `/Output/${user}/${name}`;
  }
  const values: Record<string, string> = { PAI_USER_NAME: user, PAI_JOB_NAME: name, PAI_DEFAULT_FS_URI: root };
  const uri = outputDir.replace(
    /\$(?:\{(\w+)\}|(\w+))/g,
    (all, braced, bare) => values[(braced ?? bare) as string] ?? all
  );
  const path = root !== '' && uri.startsWith(`${root}/`) ? uri.slice(root.length) : null;
  if (path === null || path.includes('$')) {
    return null;
  }
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
