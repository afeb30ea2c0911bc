// One job: what is known of it, and what can be said of that.

import { AttemptInfo, JobDetail, JobStatus, TaskStatus } from '../generated/types.gen';
import { ITranslation } from '../host';
import { Client, IAttemptTask, IJobName } from './client';
import { ApiError } from './errors';
import { clusterChanges, IDisposable, jobEvents, Polled, Signal } from './store';

/** ms between two questions, and between two that are asked because something has happened. */
const INTERVAL = 2_000;
const PAUSE = 1_000;

/** A job with all its attempts, the oldest first. These are without their tasks: the job has those of the last one. */
export interface IKnownJob {
  readonly detail: JobDetail;
  readonly attempts: readonly AttemptInfo[];
  /** When that was so (ms since the epoch). */
  readonly time: number;
}

export class JobModel implements IDisposable {
  constructor(
    readonly client: Client,
    readonly name: IJobName
  ) {
    this.polled = new Polled(
      () => this.ask(),
      INTERVAL,
      () => this.followed()
    );
    this.polled.changed.connect(() => this.changed.emit());
  }

  /** `null` until the first answer. */
  get known(): IKnownJob | null {
    return this.polled.answer;
  }

  /** Why the last question had no answer; empty when it had one. */
  get error(): string {
    return this.polled.error;
  }

  /** Whether there is no such job (any more). */
  get gone(): boolean {
    return this._gone && this.polled.error !== '';
  }

  get ended(): boolean {
    const state = this.known?.detail.jobStatus.state;
    return state !== undefined && state !== 'WAITING' && state !== 'RUNNING';
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.polled.isDisposed;
  }

  async refresh(): Promise<void> {
    await this.polled.refresh();
  }

  /** Ask for what a page that is about to be opened shows first: the answer is on its way while the page is made. */
  begin(): void {
    this.begun ??= this.askFirst();
    this.begun.catch(() => undefined); // who waits for it is told
  }

  setShown(shown: boolean): void {
    this.polled.setShown(shown);
  }

  dispose(): void {
    this.polled.dispose();
    this.changed.clear();
  }

  /** Return what may change it: what happens to it, and while it waits all that others do. */
  private followed() {
    const { username, name } = this.name;
    const waits = this.known?.detail.jobStatus.state === 'WAITING';
    return [...jobEvents(this.client, username, PAUSE, name), ...(waits ? clusterChanges(this.client) : [])];
  }

  private async ask(): Promise<IKnownJob> {
    try {
      const { known } = this;
      if (known === null) {
        const begun = this.begun ?? this.askFirst();
        this.begun = null;
        return await begun;
      }
      const detail = await this.client.detail(this.name);
      // where nothing has changed since they were asked for, there are no others
      const attempts = detail === known.detail && this.certain ? known.attempts : await this.client.attempts(this.name);
      this.certain = true;
      return { detail, attempts, time: Date.now() };
    } catch (error) {
      this._gone = error instanceof ApiError && error.status === 404;
      throw error;
    }
  }

  /** Ask for both at once: somebody has just opened the page. */
  private async askFirst(): Promise<IKnownJob> {
    const [detail, attempts] = await Promise.all([this.client.detail(this.name), this.client.attempts(this.name)]);
    return { detail, attempts, time: Date.now() };
  }

  private begun: Promise<IKnownJob> | null = null;
  private readonly polled: Polled<IKnownJob>;
  private _gone = false;
  /** Whether the attempts were asked for after the job: they may be older otherwise. */
  private certain = false;
}

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
