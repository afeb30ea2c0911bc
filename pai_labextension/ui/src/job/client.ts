// What the page of one job asks: the job, its attempts, what happened to it, what its tasks wrote and use.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { GenericSchema, InferOutput } from 'valibot';

import { json, parsed } from '../answers';
import { ApiError, ask, request } from '../api';
import { AttemptInfo, JobDetail, JobEvent, TaskMetrics } from '../generated/types.gen';
import { vAttempts, vJobDetail, vJobEvents, vTaskMetrics } from '../generated/valibot.gen';
import { IAnswer, ILogSource } from './log/reader';
import { freshName } from './names';

/** What a job's page shows; a name alone may be two users'. */
export interface IJobName {
  readonly user: string;
  readonly name: string;
}

/** Which log of a task. */
export type Stream = 'all' | 'stdout' | 'stderr';

/** A task of an attempt; `attempt` counts from 0. */
export interface IAttemptTask {
  readonly role: string;
  readonly index: number;
  readonly attempt: number;
}

/** Names that are tried for a job that is to run again. */
const NAMES = 100;

/** Asks about one job in the person's name; every call rejects with `ApiError` or `AnswerError`. */
export class JobClient {
  /** @param language - of the sentences that come back, as JupyterLab names it ("zh_CN") */
  constructor(
    readonly job: IJobName,
    private readonly settings: ServerConnection.ISettings,
    private readonly language: string,
    private readonly trans: TranslationBundle
  ) {}

  /** Return how the job is; the same object as long as nothing has changed. */
  async detail(): Promise<JobDetail> {
    return this.readAgain(vJobDetail, '');
  }

  /** Return its attempts without their tasks, the oldest first; the same object as long as nothing has changed. */
  async attempts(): Promise<AttemptInfo[]> {
    return this.readAgain(vAttempts, 'attempts?tasks=0');
  }

  /** Return the tasks of an attempt (from 0) by their roles. */
  async tasksOf(attempt: number): Promise<AttemptInfo['taskRoles']> {
    const [found] = await this.read(vAttempts, `attempts?attempt=${attempt}`);
    return found?.taskRoles ?? {};
  }

  async events(): Promise<JobEvent[]> {
    return this.read(vJobEvents, 'events');
  }

  /** Return the job as it was submitted. */
  async configuration(): Promise<Record<string, unknown>> {
    return (await this.ask('GET', 'config')) as Record<string, unknown>;
  }

  /** Return what a task has used, later than `after` (ms since the epoch). */
  async metrics(task: IAttemptTask, after: number): Promise<TaskMetrics> {
    return this.read(vTaskMetrics, `${taskPath(task)}/metrics?attempt=${task.attempt}&after=${after}`);
  }

  async stop(): Promise<void> {
    await this.ask('PUT', 'executionType', { value: 'STOP' });
  }

  /** Delete the job with its logs. */
  async remove(): Promise<void> {
    await this.ask('DELETE', '');
  }

  /** Submit the same job under the first name that is free; return that. */
  async runAgain(): Promise<IJobName> {
    const configuration = await this.configuration();
    let name = this.job.name;
    for (let tries = 0; ; tries += 1) {
      name = freshName(name);
      try {
        const path = `pai/api/v1/user/${encodeURIComponent(this.job.user)}/jobs`;
        await ask(this.settings, this.language, 'POST', path, { ...configuration, jobName: name });
        return { user: this.job.user, name };
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 409) || tries === NAMES) {
          throw error;
        }
      }
    }
  }

  /** Return where the log of a task is read. */
  logSource(task: IAttemptTask, stream: Stream): ILogSource {
    const read = async (parameters: Record<string, number>): Promise<IAnswer> => {
      const query = URLExt.objectToQueryString({ attempt: task.attempt, ...parameters });
      const path = this.path(`${taskPath(task)}/logs/${stream}`) + query;
      const response = await request(this.settings, this.language, 'GET', path);
      return { headers: response.headers, body: new Uint8Array(await response.arrayBuffer()) };
    };
    return {
      read: (offset, limit, timestamps) => read({ offset, limit, timestamps: timestamps ? 1 : 0 }),
      since: (time, limit) => read({ since: Math.max(0, Math.floor(time)), limit, timestamps: 1 })
    };
  }

  /** Return the address at which a browser downloads the whole log of a task. */
  logUrl(task: IAttemptTask, stream: Stream): string {
    return URLExt.join(this.settings.baseUrl, this.path(`${taskPath(task)}/logs/${stream}?attempt=${task.attempt}`));
  }

  private async read<Schema extends GenericSchema>(schema: Schema, below: string): Promise<InferOutput<Schema>> {
    return parsed(schema, await this.ask('GET', below), this.trans);
  }

  /** As `read`; an answer that is as the one before is the same object, and costs no reading. */
  private async readAgain<Schema extends GenericSchema>(schema: Schema, below: string): Promise<InferOutput<Schema>> {
    const response = await request(this.settings, this.language, 'GET', this.path(below));
    const text = await response.text();
    const before = this.answers.get(below);
    if (before?.text === text) {
      return before.answer;
    }
    const answer = parsed(schema, json(text), this.trans);
    this.answers.set(below, { text, answer });
    return answer;
  }

  private ask(method: string, below: string, body?: unknown): Promise<unknown> {
    return ask(this.settings, this.language, method, this.path(below), body);
  }

  private path(below: string): string {
    const [user, name] = [this.job.user, this.job.name].map(encodeURIComponent);
    return `pai/api/v1/user/${user}/jobs/${name}${below && '/'}${below}`;
  }

  private readonly answers = new Map<string, { readonly text: string; readonly answer: unknown }>();
}

function taskPath({ role, index }: IAttemptTask): string {
  return `taskRoles/${encodeURIComponent(role)}/tasks/${index}`;
}
