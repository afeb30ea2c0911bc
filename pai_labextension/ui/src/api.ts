// The scheduler's API, as the notebook server forwards it; names and meanings: job-contract.md, section 4.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

/** Places of each queue that are shown. */
const PLACES = 200;

export type JobState = 'WAITING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'STOPPED';

/** An item of the job list. Times are ms since the epoch. */
export interface IJob {
  readonly name: string;
  readonly username: string;
  readonly state: JobState;
  /** What it is doing exactly, as "DEBUG_HELD". */
  readonly subState: string;
  readonly createdTime: number;
  readonly completedTime: number | null;
  readonly appExitCode: number | null;
  readonly totalGpuNumber: number;
  readonly priority: number;
  /** From 1, within its virtual cluster; `null`: it is not in line. */
  readonly queuePlace: number | null;
}

/** A waiting job in the order of its virtual cluster. */
export interface IQueueEntry {
  readonly place: number;
  readonly priority: number;
  readonly user: string;
  /** `null` where it is another user's business. */
  readonly name: string | null;
  readonly totalGpuNumber: number;
  readonly waitingReason: string | null;
  /** What becomes free is kept for it. */
  readonly reserved: boolean;
}

/** Who a token belongs to. */
export interface IUser {
  readonly username: string;
  readonly admin: boolean;
}

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

/** Asks the scheduler in the person's name; every call rejects with `ApiError`. */
export class Api {
  /**
   * @param settings - the notebook server
   * @param language - of the sentences the scheduler writes, as JupyterLab names it ("zh_CN")
   */
  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly language: string
  ) {}

  /** Tell who the person is to the scheduler. */
  async whoami(): Promise<IUser> {
    return (await this.send('GET', ['user'])) as IUser;
  }

  /** List a user's jobs, newest first. */
  async jobs(user: string): Promise<IJob[]> {
    return (await this.send('GET', ['jobs'], { username: user })) as IJob[];
  }

  /** Say why a job waits; empty when it does not. */
  async waitingReason(job: IJob): Promise<string> {
    const detail = (await this.send('GET', jobPath(job))) as { jobStatus: { waitingReason: string } };
    return detail.jobStatus.waitingReason;
  }

  /** Stop a job. */
  async stop(job: IJob): Promise<void> {
    await this.send('PUT', [...jobPath(job), 'executionType'], {}, { value: 'STOP' });
  }

  /** List the first waiting jobs of each virtual cluster, first come first, and the person's own that come later. */
  async queue(): Promise<Record<string, IQueueEntry[]>> {
    return (await this.send('GET', ['queue'], { limit: String(PLACES), own: '1' })) as Record<string, IQueueEntry[]>;
  }

  /** Give a job another priority, or another place (from 1) among those of its priority that one may move. */
  async reorder(user: string, name: string, to: { place: number } | { priority: number }): Promise<void> {
    await this.send('PUT', ['user', user, 'jobs', name, 'queue'], {}, to);
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
 * Ask the notebook server for JSON; `ApiError` where it refuses, or does not answer.
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
  return parse(await (await request(settings, language, method, path, body)).text());
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
    const answer = parse(await response.text());
    throw new ApiError(
      response.status,
      answer?.code ?? 'UnknownError',
      answer?.message ?? `${response.status} ${response.statusText}`
    );
  }
  return response;
}

function jobPath(job: IJob): string[] {
  return ['user', job.username, 'jobs', job.name];
}

function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
