// The scheduler's API, as the notebook server forwards it; names and meanings: job-contract.md, section 4.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { GenericSchema, InferOutput, is } from 'valibot';

import { json, parsed } from './answers';
import {
  JobSummary as IJob,
  NodeInfo as INode,
  QueueEntry as IQueueEntry,
  TaskMetrics as IMetrics,
  UserInfo as IUser
} from './generated/types.gen';
import { vJobDetail, vJobs, vNodes, vQueues, vRefusal, vTaskMetrics, vUserInfo } from './generated/valibot.gen';

export type {
  JobSummary as IJob,
  NodeInfo as INode,
  QueueEntry as IQueueEntry,
  UserInfo as IUser
} from './generated/types.gen';

export type JobState = IJob['state'];

/** Places of each queue that are shown. */
const PLACES = 200;

/** The scheduler, or the way to it, refused. `code` is the contract's name for the reason. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** Asks the scheduler in the person's name; every call rejects with `ApiError` or `AnswerError`. */
export class Api {
  /**
   * @param settings - the notebook server
   * @param language - of the sentences the scheduler writes, as JupyterLab names it ("zh_CN")
   */
  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly language: string,
    private readonly trans: TranslationBundle
  ) {}

  /** Return who the person is to the scheduler. */
  async whoami(): Promise<IUser> {
    return this.read(vUserInfo, ['user']);
  }

  /** List a user's jobs, newest first. */
  async jobs(user: string): Promise<IJob[]> {
    return this.read(vJobs, ['jobs'], { username: user });
  }

  /** Return why a job waits; empty when it does not. */
  async waitingReason(job: IJob): Promise<string> {
    return (await this.read(vJobDetail, jobPath(job))).jobStatus.waitingReason;
  }

  /** Stop a job. */
  async stop(job: IJob): Promise<void> {
    await this.send('PUT', [...jobPath(job), 'executionType'], {}, { value: 'STOP' });
  }

  /** List the first waiting jobs of each virtual cluster, first come first, and the person's own that come later. */
  async queue(): Promise<Record<string, IQueueEntry[]>> {
    return this.read(vQueues, ['queue'], { limit: String(PLACES), own: '1' });
  }

  /** List the machines of the cluster. */
  async nodes(): Promise<INode[]> {
    return this.read(vNodes, ['nodes']);
  }

  /** Return what a task has used, later than `after` (ms since the epoch). */
  async metrics(user: string, job: string, role: string, index: number, after: number): Promise<IMetrics> {
    const path = ['user', user, 'jobs', job, 'taskRoles', role, 'tasks', String(index), 'metrics'];
    return this.read(vTaskMetrics, path, { after: String(after) });
  }

  /** Change a job's priority, or its place (from 1) among those of its priority that one may move. */
  async reorder(user: string, name: string, to: { place: number } | { priority: number }): Promise<void> {
    await this.send('PUT', ['user', user, 'jobs', name, 'queue'], {}, to);
  }

  private async read<Schema extends GenericSchema>(
    schema: Schema,
    path: readonly string[],
    parameters: Record<string, string> = {}
  ): Promise<InferOutput<Schema>> {
    return parsed(schema, await this.send('GET', path, parameters), this.trans);
  }

  private send(
    method: string,
    path: readonly string[],
    parameters: Record<string, string> = {},
    body?: unknown
  ): Promise<unknown> {
    const url = URLExt.join('pai/api/v1', ...path.map(encodeURIComponent)) + URLExt.objectToQueryString(parameters);
    return ask(this.settings, this.language, method, url, body);
  }
}

/**
 * Ask the notebook server for JSON, `undefined` where what it says is none; `ApiError` where it refuses, or does not
 * answer.
 *
 * @param path - below its base URL, encoded
 */
export async function ask(
  settings: ServerConnection.ISettings,
  language: string,
  method: string,
  path: string,
  body?: unknown
): Promise<unknown> {
  return json(await (await request(settings, language, method, path, body)).text());
}

/** As `ask`, for what is no JSON. */
export async function request(
  settings: ServerConnection.ISettings,
  language: string,
  method: string,
  path: string,
  body?: unknown
): Promise<Response> {
  const headers: Record<string, string> = { 'Accept-Language': language.replace('_', '-') };
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
  }
  const response = await ServerConnection.makeRequest(
    URLExt.join(settings.baseUrl, path),
    { method, headers, body: body === undefined ? null : JSON.stringify(body) },
    settings
  ).catch((error: Error) => {
    throw new ApiError(0, 'ServerUnreachable', error.message);
  });
  if (!response.ok) {
    const answer = json(await response.text());
    const { code, message } = is(vRefusal, answer) ? answer : {};
    throw new ApiError(response.status, code ?? 'UnknownError', message ?? `${response.status} ${response.statusText}`);
  }
  return response;
}

function jobPath(job: IJob): string[] {
  return ['user', job.username, 'jobs', job.name];
}
