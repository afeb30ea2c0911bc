import { createServer, Server } from 'node:http';
import { AddressInfo } from 'node:net';

import { ServerConnection } from '@jupyterlab/services';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Client, IProgress } from '../console/data/client';
import { clientOf } from './notebookServer';

describe('submit with code', () => {
  let server: Server;
  let client: Client;
  let answer: [status: number, body: string];

  beforeEach(async () => {
    server = createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(answer[0]).end(answer[1]));
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    client = clientOf(ServerConnection.makeSettings({ baseUrl: `http://127.0.0.1:${port}/` }));
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  });

  async function submit(): Promise<{ name: string; seen: IProgress[] }> {
    const seen: IProgress[] = [];
    const signal = new AbortController().signal;
    const { name } = await client.submitCode({ path: 'job.json' }, progress => seen.push(progress), signal);
    return { name, seen };
  }

  it('tells how far it is, and which job came of it', async () => {
    const progress = { files: 1, filesTotal: 2, bytes: 3, bytesTotal: 4 };
    answer = [200, `${JSON.stringify({ progress })}\n{"job":{"name":"train","username":"alice"}}\n`];
    expect(await submit()).toEqual({ name: 'train', seen: [progress] });
  });

  it('gives a refusal in the words of the server, before and while it works', async () => {
    answer = [200, '{"error":{"message":"The storage is full."}}\n'];
    await expect(submit()).rejects.toThrow('The storage is full.');
    answer = [422, '{"message":"There is no such file."}'];
    await expect(submit()).rejects.toThrow('There is no such file.');
    answer = [500, '<h1>Oops</h1>'];
    await expect(submit()).rejects.toThrow('500');
  });

  it('says of an answer that is not what it should be where it is wrong', async () => {
    answer = [200, '{"job":{"name":"train"}}\n'];
    await expect(submit()).rejects.toThrow('cannot be read (job.username: ');
    answer = [200, '{"jobName":"train"}'];
    await expect(client.planCode({ path: 'job.json' })).rejects.toThrow('cannot be read (');
  });
});
