import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { AnswerError } from '../src/answers';
import { Api, ApiError } from '../src/api';
import { detail, NotebookServer, job, trans, user, jobStatus } from './notebookServer';

describe('Api', () => {
  let server: NotebookServer;
  let api: Api;

  beforeEach(async () => {
    server = await NotebookServer.open();
    api = new Api(server.settings, 'zh_CN', trans);
  });

  afterEach(() => server.close());

  it('asks the notebook server, in the language of the person', async () => {
    server.answers['GET user'] = [200, user()];
    expect(await api.whoami()).toEqual(user());
    expect(server.asked[0]!.headers['accept-language']).toBe('zh-CN');
    expect(server.asked[0]!.headers.authorization).toBe('token secret');
  });

  it('encodes names, whatever they are made of', async () => {
    const strange = job({ username: 'a b/c', name: 'x~1' });
    server.answers['GET jobs'] = [200, []];
    server.answers['GET user/a%20b%2Fc/jobs/x~1'] = [
      200,
      detail({ jobStatus: jobStatus({ waitingReason: 'third in the queue' }) })
    ];
    expect(await api.jobs('a b/c')).toEqual([]);
    expect(await api.waitingReason(strange)).toBe('third in the queue');
    expect(server.requests).toEqual(['GET jobs?username=a%20b%2Fc', 'GET user/a%20b%2Fc/jobs/x~1']);
  });

  it('stops a job', async () => {
    server.answers['PUT user/alice/jobs/train/executionType'] = [202, { message: 'execute job train successfully' }];
    await api.stop(job());
    expect(server.asked[0]!.body).toBe('{"value":"STOP"}');
    expect(server.asked[0]!.headers['content-type']).toBe('application/json');
  });

  it('gives a refusal in the words of the scheduler', async () => {
    server.answers['PUT user/alice/jobs/train/executionType'] = [404, { code: 'NoJobError', message: '没有此作业' }];
    await expect(api.stop(job())).rejects.toEqual(new ApiError(404, 'NoJobError', '没有此作业'));
  });

  it('gives a refusal that is no JSON, too', async () => {
    server.answers['GET user'] = [500, '<h1>Oops</h1>'];
    await expect(api.whoami()).rejects.toMatchObject({ status: 500, message: '500 Internal Server Error' });
  });

  it('says of an answer that is not what it should be where it is wrong', async () => {
    server.answers['GET jobs'] = [200, [job(), { ...job(), priority: undefined }]];
    const refusal = await api.jobs('alice').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(AnswerError);
    expect((refusal as AnswerError).message).toContain('cannot be read (1.priority: ');
    server.answers['GET jobs'] = [200, '<h1>Hello</h1>'];
    await expect(api.jobs('alice')).rejects.toThrow('cannot be read (Invalid type: Expected Array');
  });

  it('reads answers of a scheduler that is newer', async () => {
    const newer = { ...job(), subState: 'RESTING', mood: 'good' };
    server.answers['GET jobs'] = [200, [newer]];
    expect(await api.jobs('alice')).toEqual([job({ subState: 'RESTING' })]);
  });

  it('says when nobody answers at all', async () => {
    await server.close();
    await expect(api.whoami()).rejects.toMatchObject({ status: 0, code: 'ServerUnreachable' });
  });
});
