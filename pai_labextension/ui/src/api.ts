// The scheduler's API, as the notebook server forwards it; names and meanings: job-contract.md, section 4.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { GenericSchema, InferOutput, is } from 'valibot';

import { json, parsed } from './answers';
import {
  ClusterUsage as IClusterUsage,
  JobDetail as IJobDetail,
  JobSummary as IJob,
  NodeInfo as INode,
  QueueEntry as IQueueEntry,
  ScheduleInfo as ISchedule,
  TaskMetrics as IMetrics,
  UserInfo as IUser,
  Validation as IValidation,
  VirtualClusters as IVirtualClusters
} from './generated/types.gen';
import {
  vClusterUsage,
  vJobDetail,
  vJobs,
  vNodes,
  vQueues,
  vRefusal,
  vSchedules,
  vStartedRun,
  vTaskMetrics,
  vUserInfo,
  vValidation,
  vVirtualClusters
} from './generated/valibot.gen';

export type {
  ClusterUsage as IClusterUsage,
  JobSummary as IJob,
  NodeInfo as INode,
  QueueEntry as IQueueEntry,
  ScheduleInfo as ISchedule,
  UserInfo as IUser,
  Validation as IValidation,
  VirtualClusters as IVirtualClusters
} from './generated/types.gen';

export type JobState = IJob['state'];

/** Places of each queue that are shown. */
const PLACES = 200;

/** Some jobs, newest first; `next` is the cursor of those that come after them, `null` where there are none. */
export interface IJobsPage {
  readonly jobs: readonly IJob[];
  readonly next: string | null;
}

/** The code of not having reached the notebook server. */
const UNREACHABLE = 'ServerUnreachable';

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

  /** List a user's jobs, newest first: `limit` of them, those in some states, those after a cursor. */
  async jobs(
    user: string,
    { limit, state, after }: { limit: number; state?: string; after?: string }
  ): Promise<IJobsPage> {
    const wanted = { ...(state ? { state } : {}), ...(after ? { after } : {}), limit: String(limit) };
    const response = await this.ask('GET', ['jobs'], { username: user, ...wanted });
    const jobs = parsed(vJobs, json(await response.text()), this.trans);
    return { jobs, next: nextCursor(response.headers.get('Link')) };
  }

  /** Return what there is to know of a job. */
  async detail(job: IJob): Promise<IJobDetail> {
    return this.read(vJobDetail, jobPath(job));
  }

  /** Return why a job waits; empty when it does not. */
  async waitingReason(job: IJob): Promise<string> {
    return (await this.detail(job)).jobStatus.waitingReason;
  }

  /** Return whether a user has a job of that name, ended or not. */
  async hasJob(user: string, name: string): Promise<boolean> {
    try {
      await this.send('GET', ['user', user, 'jobs', name], {});
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'NoJobError') {
        return false;
      }
      throw error;
    }
  }

  /** Return the text of a job as it was submitted: with its comments, or JSON in one line. */
  async submittedText(user: string, name: string): Promise<string> {
    return (await this.ask('GET', ['user', user, 'jobs', name, 'config'], { as: 'submitted' })).text();
  }

  /** Return the job as it was submitted. */
  async config(user: string, name: string): Promise<unknown> {
    return this.send('GET', ['user', user, 'jobs', name, 'config'], {});
  }

  /** Return what submitting a job would do. */
  async validate(config: unknown): Promise<IValidation> {
    return parsed(vValidation, await this.send('POST', ['validate'], {}, config), this.trans);
  }

  /** Submit a job, as JSON or as a text with comments, which is kept. */
  async submit(job: unknown): Promise<void> {
    await this.send('POST', ['jobs'], {}, job);
  }

  /**
   * Stop a job.
   *
   * @param force - its tasks have no time to end by themselves, also where they are being stopped already
   */
  async stop(job: Pick<IJob, 'name' | 'username'>, force = false): Promise<void> {
    await this.send('PUT', [...jobPath(job), 'executionType'], {}, { value: 'STOP', ...(force && { force }) });
  }

  /** Delete a job and its logs; one that runs is stopped first. */
  async delete(job: Pick<IJob, 'name' | 'username'>): Promise<void> {
    await this.send('DELETE', jobPath(job));
  }

  /** List the first waiting jobs of each virtual cluster, first come first, and the person's own that come later. */
  async queue(): Promise<Record<string, IQueueEntry[]>> {
    return this.read(vQueues, ['queue'], { limit: String(PLACES), own: '1' });
  }

  /** List the schedules of a user by name. */
  async schedules(user: string): Promise<ISchedule[]> {
    return this.read(vSchedules, ['user', user, 'schedules']);
  }

  /** Let a schedule rest, or go on. */
  async pauseSchedule(schedule: ISchedule, paused: boolean): Promise<void> {
    await this.send('PUT', [...schedulePath(schedule), 'state'], {}, { paused });
  }

  /** Submit a schedule's job now; return the job's name. */
  async runSchedule(schedule: ISchedule): Promise<string> {
    return parsed(vStartedRun, await this.send('POST', [...schedulePath(schedule), 'runs']), this.trans).job;
  }

  /** Delete a schedule; its jobs stay. */
  async deleteSchedule(schedule: ISchedule): Promise<void> {
    await this.send('DELETE', schedulePath(schedule));
  }

  /** List the machines of the cluster. */
  async nodes(): Promise<INode[]> {
    return this.read(vNodes, ['nodes']);
  }

  /** List the virtual clusters by name. */
  async virtualClusters(): Promise<IVirtualClusters> {
    return this.read(vVirtualClusters, ['virtual-clusters']);
  }

  /** Return how many GPUs were taken over the last day, later than `after` (ms since the epoch). */
  async clusterUsage(after: number): Promise<IClusterUsage> {
    return this.read(vClusterUsage, ['cluster', 'usage'], { after: String(after) });
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

  private async send(
    method: string,
    path: readonly string[],
    parameters: Record<string, string> = {},
    body?: unknown
  ): Promise<unknown> {
    return json(await (await this.ask(method, path, parameters, body)).text());
  }

  private async ask(
    method: string,
    path: readonly string[],
    parameters: Record<string, string>,
    body?: unknown
  ): Promise<Response> {
    const url = URLExt.join('pai/api/v1', ...path.map(encodeURIComponent)) + URLExt.objectToQueryString(parameters);
    return request(this.settings, this.language, method, url, body);
  }
}

/**
 * Ask the notebook server for JSON, `undefined` where what it says is none; `ApiError` where it refuses, or does not
 * answer.
 *
 * @param path - below its base URL, encoded
 * @param body - what is sent as JSON; a string is JSON already
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
    { method, headers, body: body === undefined || typeof body === 'string' ? (body ?? null) : JSON.stringify(body) },
    settings
  ).catch((error: Error) => {
    // (what the browser says of it is no sentence: `ended/speaking.ts` has put one in its place)
    throw new ApiError(0, UNREACHABLE, error.message);
  });
  if (!response.ok) {
    const answer = json(await response.text());
    const { code, message } = is(vRefusal, answer) ? answer : {};
    throw new ApiError(response.status, code ?? 'UnknownError', message ?? `${response.status} ${response.statusText}`);
  }
  return response;
}

function jobPath(job: Pick<IJob, 'name' | 'username'>): string[] {
  return ['user', job.username, 'jobs', job.name];
}

function schedulePath(schedule: ISchedule): string[] {
  return ['user', schedule.username, 'schedules', schedule.name];
}

/** Find the cursor of the next page in an answer's header `Link`; `null`: there is no other page. */
function nextCursor(link: string | null): string | null {
  const address = /<([^>]*)>; *rel="next"/.exec(link ?? '')?.[1];
  return address === undefined ? null : new URLSearchParams(address.replace(/^[^?]*/, '')).get('after');
}
