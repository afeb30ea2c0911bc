import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Client, IConnect } from '../../../console/data/client';
import { ConnectModel } from '../../../console/access/connect';
import { clientOf, NotebookServer } from '../../notebookServer';

const TASK = { user: 'alice', job: 'train', task: 'worker-0' };
const CONNECT = '/user/alice/pai/connect/alice/train/worker-0';

const connect: IConnect = {
  ...TASK,
  login: 'alice+train+worker-0',
  gateway: null,
  published: null,
  off: null,
  workDir: '/work',
  python: '',
  ports: [],
  isolated: true
};

describe('what is known of a way in', () => {
  let server: NotebookServer;
  let client: Client;
  let model: ConnectModel;

  beforeEach(async () => {
    server = await NotebookServer.open();
    client = clientOf(server.settings, 'zh-CN');
    model = new ConnectModel(TASK, client);
  });

  afterEach(() => server.close());

  it('is the address, or why it is not known, and then the last one', async () => {
    server.answers[`GET ${CONNECT}`] = [200, connect];
    await model.refresh();
    expect(model.connect).toMatchObject(TASK);
    expect(server.asked[0]!.headers['accept-language']).toBe('zh-CN');
    server.answers[`GET ${CONNECT}`] = [502, { message: '调度器没有响应' }];
    await model.refresh();
    expect(model.error).toBe('调度器没有响应');
    expect(model.connect).toMatchObject(TASK);
  });

  it('is what came of trying it', async () => {
    const seen: boolean[] = [];
    model.changed.connect(() => seen.push(model.isChecking));
    server.answers[`POST ${CONNECT}/check`] = [200, { ok: true, message: 'alice logged in', milliseconds: 12 }];
    await model.check();
    expect(model.checked).toEqual({ ok: true, message: 'alice logged in', milliseconds: 12 });
    expect(seen).toEqual([true, false]);
    server.answers[`POST ${CONNECT}/check`] = [500, 'oops'];
    await model.check();
    expect(model.checked).toMatchObject({ ok: false, message: '500 Internal Server Error' });
  });

  it('has the keys of the owner: added, removed, refused', async () => {
    const key = { fingerprint: 'SHA256:a/b+c', type: 'ssh-ed25519', comment: 'me@laptop', addedTime: 1 };
    server.answers['GET user/alice/ssh-keys'] = [200, [key]];
    server.answers['POST user/alice/ssh-keys'] = [201, key];
    expect(await model.addKey('ssh-ed25519 AAAA')).toBe(true);
    expect(model.keys).toEqual([key]);
    expect(server.asked[0]!.body).toBe('{"key":"ssh-ed25519 AAAA"}');
    server.answers['DELETE user/alice/ssh-keys/SHA256%3Aa%2Fb%2Bc'] = [204, ''];
    server.answers['GET user/alice/ssh-keys'] = [200, []];
    expect(await model.removeKey(key)).toBe(true);
    expect(model.keys).toEqual([]);
    server.answers['POST user/alice/ssh-keys'] = [
      400,
      { code: 'InvalidParametersError', message: 'This is a private key.' }
    ];
    expect(await model.addKey('-----BEGIN')).toBe(false);
    expect(model.keysError).toBe('This is a private key.');
    expect(model.keys).toEqual([]);
  });

  it('has the key of the job as a file', async () => {
    server.answers['GET user/alice/jobs/train/ssh/key'] = [200, '-----BEGIN OPENSSH PRIVATE KEY-----'];
    expect(await (await client.key(TASK, 'ppk')).text()).toContain('BEGIN OPENSSH');
    expect(server.asked[0]!.url).toContain('format=ppk');
  });

  it('has links that are the notebook server’s', async () => {
    server.answers[`POST ${CONNECT}/code-server`] = [200, { url: '/user/alice/pai/ports/alice/train/worker-0/8080/' }];
    const { host } = new URL(server.settings.baseUrl);
    expect(await client.codeServer(TASK)).toBe(`http://${host}/user/alice/pai/ports/alice/train/worker-0/8080/`);
  });
});
