// A real HTTP server in place of the notebook server: it notes what it is asked, and answers by path.

import { createServer, IncomingMessage, Server } from 'node:http';
import { AddressInfo } from 'node:net';

import { ServerConnection } from '@jupyterlab/services';

import { IJob, IQueueEntry } from '../src/api';

export interface IAsked {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** What to answer: a status and JSON. */
export type Answer = [status: number, body: unknown];

export class Door {
  readonly asked: IAsked[] = [];
  /** By method and path below `/pai/api/v1/`, without the query. */
  readonly answers: Record<string, Answer> = {};

  static async open(): Promise<Door> {
    const door = new Door();
    await new Promise<void>(resolve => door.server.listen(0, '127.0.0.1', resolve));
    return door;
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
      const [status, answer] = this.answers[`${method} ${url.split('?')[0]}`] ?? [
        404,
        { code: 'NoApiError', message: url }
      ];
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
    });
  });
}

/** Make a job with the given differences. */
export function job(changes: Partial<IJob> = {}): IJob {
  return {
    name: 'train',
    username: 'alice',
    state: 'RUNNING',
    subState: 'RUNNING',
    createdTime: 1_700_000_000_000,
    completedTime: null,
    appExitCode: null,
    totalGpuNumber: 2,
    priority: 50,
    queuePlace: null,
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
    waitingReason: 'waiting for 2 × P100',
    reserved: false,
    ...changes
  };
}
