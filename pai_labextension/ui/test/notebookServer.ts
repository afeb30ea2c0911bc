// A real HTTP server in place of the notebook server: it notes what it is asked, and answers by path.

import { createServer, IncomingMessage, Server } from 'node:http';
import { AddressInfo } from 'node:net';

import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';

import { Client, IJob, IQueueEntry, IUser } from '../console/data/client';
import { AttemptInfo, JobDetail, JobStatus, TaskStatus } from '../console/generated/types.gen';
import { LabTransport } from '../lab/host';

export interface IAsked {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** What to answer: a status and JSON, and headers if need be; or what to answer to an address. */
export type Answer = [status: number, body: unknown, headers?: Record<string, string>];

export class NotebookServer {
  readonly asked: IAsked[] = [];
  /** By method and path below `/pai/api/v1/`, without the query. */
  readonly answers: Record<string, Answer | ((url: string) => Answer)> = {};

  static async open(): Promise<NotebookServer> {
    const server = new NotebookServer();
    // nothing is told here: all has to be asked for
    server.server.on('upgrade', (_, socket) => socket.destroy());
    await new Promise<void>(resolve => server.server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get settings(): ServerConnection.ISettings {
    const { port } = this.server.address() as AddressInfo;
    return ServerConnection.makeSettings({ baseUrl: `http://127.0.0.1:${port}/user/alice/`, token: 'secret' });
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise(resolve => this.server.close(resolve));
  }

  /** Give what was asked, as "GET jobs?username=alice". */
  get requests(): string[] {
    return this.asked.map(asked => `${asked.method} ${asked.url.replace(/[?&]\d+$/, '')}`);
  }

  private readonly server: Server = createServer((request, response) => {
    let body = '';
    request.on('data', piece => (body += piece));
    request.on('end', () => {
      const url = request.url!.replace('/user/alice/pai/api/v1/', '');
      const method = request.method!;
      this.asked.push({ method, url, headers: request.headers, body });
      const known = this.answers[`${method} ${url.split('?')[0]}`] ?? [404, { code: 'NoApiError', message: url }];
      const [status, answer, headers] = typeof known === 'function' ? known(url) : known;
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
      response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
    });
  });
}

/** English. */
export const trans = nullTranslator.load('');

/** Return what asks a server in a language. */
export function clientOf(settings: ServerConnection.ISettings, language = 'en'): Client {
  return new Client(new LabTransport(settings, language, trans), trans);
}

/** Make a person with the given differences. */
export function user(changes: Partial<IUser> = {}): IUser {
  return {
    username: 'alice',
    email: '',
    grouplist: [],
    extension: {},
    admin: false,
    virtualCluster: ['default'],
    ...changes
  };
}

/** Make the state of a job with the given differences. */
export function jobStatus(changes: Partial<JobStatus> = {}): JobStatus {
  return {
    username: 'alice',
    virtualCluster: 'default',
    state: 'RUNNING',
    subState: 'RUNNING',
    createdTime: 1_700_000_000_000,
    completedTime: null,
    appLaunchedTime: null,
    appExitCode: null,
    appExitSpec: null,
    appExitDiagnostics: '',
    appExitMessages: { container: null, runtime: null },
    waitingReason: '',
    neverFits: false,
    priority: 50,
    queuePlace: null,
    startsWithin: null,
    latestEndTime: null,
    dependencies: [],
    dependents: [],
    dependentCount: 0,
    endingUntil: null,
    ...changes
  };
}

/** Make the state of a task with the given differences. */
export function taskStatus(changes: Partial<TaskStatus> = {}): TaskStatus {
  return {
    taskIndex: 0,
    taskState: 'RUNNING',
    containerIp: '10.0.0.1',
    containerPorts: {},
    containerGpus: 0,
    containerExitCode: null,
    node: 'node-a',
    ...changes
  };
}

/** Make an attempt with the given differences. */
export function attempt(changes: Partial<AttemptInfo> = {}): AttemptInfo {
  return {
    attempt: 0,
    state: 'RUNNING',
    createdTime: 1_700_000_000_000,
    launchedTime: null,
    completedTime: null,
    exitCode: null,
    exitSpec: null,
    trigger: null,
    reason: '',
    taskRoles: {},
    ...changes
  };
}

/** Make what there is to know of a job, with the given differences. */
export function detail(changes: Partial<JobDetail> = {}): JobDetail {
  return { name: 'train', jobStatus: jobStatus(), taskRoles: {}, ...changes };
}

/** Make a job with the given differences. */
export function job(changes: Partial<IJob> = {}): IJob {
  return {
    name: 'train',
    username: 'alice',
    state: 'RUNNING',
    subState: 'RUNNING',
    executionType: 'START',
    retries: 0,
    retryDetails: { user: 0, platform: 0, resource: 0 },
    createdTime: 1_700_000_000_000,
    completedTime: null,
    appExitCode: null,
    virtualCluster: 'default',
    totalGpuNumber: 2,
    totalTaskNumber: 1,
    totalTaskRoleNumber: 1,
    priority: 50,
    queuePlace: null,
    startsWithin: null,
    ...changes
  };
}

/** Make a waiting job with the given differences. */
export function waits(changes: Partial<IQueueEntry> = {}): IQueueEntry {
  return {
    place: 1,
    priority: 50,
    user: 'alice',
    name: 'train',
    totalGpuNumber: 2,
    totalTaskNumber: 1,
    createdTime: 1_700_000_000_000,
    startsWithin: null,
    overtaken: 0,
    waitingReason: 'waiting for 2 × P100',
    neverFits: false,
    reserved: false,
    ...changes
  };
}
