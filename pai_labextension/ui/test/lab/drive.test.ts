import { createServer, Server } from 'node:http';
import { AddressInfo } from 'node:net';

import { Contents, ServerConnection } from '@jupyterlab/services';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { LabTransport } from '../../lab/host';
import { LARGEST_OPENED } from '../../console/storage/quantities';
import { DriveError, StorageDrive } from '../../lab/storageDrive';
import { trans } from '../notebookServer';

/** Answers by method, path and operation: a status and JSON. */
type Answers = Record<string, [number, unknown]>;

describe('the drive', () => {
  let server: Server;
  let asked: string[];
  let answers: Answers;
  let drive: StorageDrive;
  let changes: Contents.IChangedArgs[];

  const status = (length = 7, type = 'FILE') => ({ FileStatus: statusOf('', length, type) });
  const statusOf = (pathSuffix: string, length = 7, type = 'FILE') => ({
    pathSuffix,
    length,
    type,
    modificationTime: 1_700_000_000_000
  });
  const listing = (names: string[], remainingEntries = 0) => ({
    DirectoryListing: {
      partialListing: { FileStatuses: { FileStatus: names.map(name => statusOf(name)) } },
      remainingEntries
    }
  });
  const missing: [number, unknown] = [404, { RemoteException: { exception: 'FileNotFoundException', message: 'no' } }];

  beforeEach(async () => {
    asked = [];
    answers = {};
    server = createServer((request, response) => {
      const url = new URL(request.url!, 'http://host');
      const path = url.pathname.replace('/user/alice/pai/webhdfs/v1', '');
      const after = url.searchParams.get('startAfter') ?? '';
      const key = `${request.method} ${path} ${url.searchParams.get('op')}${after && ` ${after}`}`;
      asked.push(key + (url.searchParams.get('destination') ? ` ${url.searchParams.get('destination')}` : ''));
      const [code, answer] = answers[key] ?? missing;
      request.resume().on('end', () => {
        response.writeHead(code, { 'Content-Type': 'application/json' });
        response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
      });
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const settings = ServerConnection.makeSettings({ baseUrl: `http://127.0.0.1:${port}/user/alice/`, token: 't' });
    drive = new StorageDrive(new LabTransport(settings, 'en', trans), trans);
    changes = [];
    drive.fileChanged.connect((_, change) => changes.push(change));
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  });

  it('lists a folder page by page, without what is not whole yet', async () => {
    answers['GET /alice GETFILESTATUS'] = [200, status(0, 'DIRECTORY')];
    answers['GET /alice LISTSTATUS_BATCH'] = [200, listing(['.b.01234567.part', 'a'], 1)];
    answers['GET /alice LISTSTATUS_BATCH a'] = [200, listing(['c'])];
    const folder = await drive.get('alice');
    expect((folder.content as Contents.IModel[]).map(item => item.path)).toEqual(['alice/a', 'alice/c']);
  });

  it('reads a file and says which are too large, or no text', async () => {
    answers['GET /alice/a.txt GETFILESTATUS'] = [200, status()];
    answers['GET /alice/a.txt OPEN'] = [200, '你好'];
    expect(await drive.get('alice/a.txt')).toMatchObject({ format: 'text', content: '你好', size: 7 });
    answers['GET /alice/a.txt GETFILESTATUS'] = [200, status(LARGEST_OPENED + 1)];
    await expect(drive.get('alice/a.txt')).rejects.toThrow('download it instead');
    answers['GET /alice/a.ipynb GETFILESTATUS'] = [200, status()];
    answers['GET /alice/a.ipynb OPEN'] = [200, '{"cells": '];
    await expect(drive.get('alice/a.ipynb')).rejects.toThrow('“a.ipynb” is not a valid notebook');
  });

  it('gives a refusal in the words of the storage', async () => {
    answers['GET /bob GETFILESTATUS'] = [403, { RemoteException: { exception: 'X', message: 'You may not.' } }];
    const error = (await drive.get('bob').catch((refusal: unknown) => refusal)) as DriveError;
    expect([error.message, error.code, error.response.status]).toEqual(['You may not.', 'X', 403]);
    answers['GET /bob GETFILESTATUS'] = [502, { code: 'SchedulerUnreachable', message: 'It does not answer.' }];
    const later = (await drive.get('bob').catch((refusal: unknown) => refusal)) as DriveError;
    expect([later.message, later.response.status]).toEqual(['It does not answer.', 502]);
  });

  it('says of an answer that is not what it should be where it is wrong', async () => {
    answers['GET /alice GETFILESTATUS'] = [200, { FileStatus: { ...statusOf(''), length: null } }];
    await expect(drive.get('alice')).rejects.toThrow('cannot be read (FileStatus.length: ');
    answers['GET /alice GETFILESTATUS'] = [200, '<h1>Hello</h1>'];
    await expect(drive.get('alice')).rejects.toThrow('cannot be read');
  });

  it('renames, but not onto something that is there: JupyterLab then asks', async () => {
    answers['PUT /alice/a RENAME'] = [200, ''];
    answers['GET /alice/b GETFILESTATUS'] = [200, status()];
    const refusal = (await drive.rename('alice/a', 'alice/b').catch((error: unknown) => error)) as DriveError;
    expect(refusal.response.status).toBe(409);
    expect(asked).not.toContain('PUT /alice/a RENAME /alice/b');
    delete answers['GET /alice/b GETFILESTATUS'];
    answers['PUT /alice/a RENAME'] = [200, ''];
    const renamed = drive.rename('alice/a', 'alice/c d');
    answers['GET /alice/c%20d GETFILESTATUS'] = missing;
    await expect(renamed).rejects.toMatchObject({ response: { status: 404 } }); // it went again at once
    expect(asked).toContain('PUT /alice/a RENAME /alice/c d');
  });

  it('finds a name that is free for what is new', async () => {
    answers['GET /alice/untitled.py GETFILESTATUS'] = [200, status()];
    answers['PUT /alice/untitled-1.py CREATE'] = [201, ''];
    const made = drive.newUntitled({ path: 'alice', type: 'file', ext: 'py' });
    server.prependListener('request', () => {
      if (asked.includes('PUT /alice/untitled-1.py CREATE')) {
        answers['GET /alice/untitled-1.py GETFILESTATUS'] = [200, status(0)];
      }
    });
    expect((await made).path).toBe('alice/untitled-1.py');
    expect(changes).toMatchObject([{ type: 'new', newValue: { name: 'untitled-1.py' } }]);
  });

  it('deletes, and says so to those who show it', async () => {
    answers['DELETE /alice/a DELETE'] = [200, { boolean: true }];
    await drive.delete('alice/a');
    expect(changes).toMatchObject([{ type: 'delete', oldValue: { path: 'alice/a' } }]);
  });

  it('links to what is downloaded: a file, or a folder as a zip file', async () => {
    answers['GET /alice/a%23 GETFILESTATUS'] = [200, status()];
    answers['GET /alice GETFILESTATUS'] = [200, status(0, 'DIRECTORY')];
    expect(await drive.getDownloadUrl('alice/a#')).toMatch(/\/pai\/webhdfs\/v1\/alice\/a%23\?op=OPEN$/);
    expect(await drive.getDownloadUrl('alice')).toMatch(/\/alice\?op=ARCHIVE$/);
  });
});
