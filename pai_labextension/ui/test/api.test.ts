import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Client } from '../console/data/client';
import { AnswerError, ApiError } from '../console/data/errors';
import { clientOf, detail, job, jobStatus, NotebookServer, user } from './notebookServer';

describe('Api', () => {
  let server: NotebookServer;
  let api: Client;

  beforeEach(async () => {
    server = await NotebookServer.open();
    api = clientOf(server.settings, 'zh-CN');
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
    expect(await api.jobs('a b/c', { limit: 7 })).toEqual({ jobs: [], next: null });
    expect(await api.waitOf(strange)).toEqual({ reason: 'third in the queue', neverFits: false });
    expect(server.requests).toEqual(['GET jobs?username=a%20b%2Fc&limit=7', 'GET user/a%20b%2Fc/jobs/x~1']);
  });

  it('stops a job', async () => {
    server.answers['PUT user/alice/jobs/train/executionType'] = [202, { message: 'execute job train successfully' }];
    await api.stop(job());
    expect(server.asked[0]!.body).toBe('{"value":"STOP"}');
    expect(server.asked[0]!.headers['content-type']).toBe('application/json');
    await api.stop(job(), true);
    expect(server.asked[1]!.body).toBe('{"value":"STOP","force":true}');
  });

  it('finds the next page of a list, wherever the scheduler says it is', async () => {
    const link = { Link: '<https://hub/services/pai/api/v1/jobs?username=alice&limit=7&after=WzEsMl0>; rel="next"' };
    server.answers['GET jobs'] = [200, [job()], link];
    expect((await api.jobs('alice', { limit: 7, state: 'WAITING' })).next).toBe('WzEsMl0');
    await api.jobs('alice', { limit: 7, after: 'WzEsMl0' });
    expect(server.requests).toEqual([
      'GET jobs?username=alice&state=WAITING&limit=7',
      'GET jobs?username=alice&after=WzEsMl0&limit=7'
    ]);
  });

  it('deletes a job', async () => {
    server.answers['DELETE user/alice/jobs/train'] = [202, { message: 'deleted job train successfully' }];
    await api.delete(job());
    expect(server.requests).toEqual(['DELETE user/alice/jobs/train']);
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
    const refusal = await api.jobs('alice', { limit: 7 }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(AnswerError);
    expect((refusal as AnswerError).message).toContain('cannot be read (1.priority: ');
    server.answers['GET jobs'] = [200, '<h1>Hello</h1>'];
    await expect(api.jobs('alice', { limit: 7 })).rejects.toThrow('cannot be read (Invalid type: Expected Array');
  });

  it('reads answers of a scheduler that is newer', async () => {
    const newer = { ...job(), subState: 'RESTING', mood: 'good' };
    server.answers['GET jobs'] = [200, [newer]];
    expect((await api.jobs('alice', { limit: 7 })).jobs).toEqual([job({ subState: 'RESTING' })]);
  });

  it('says when nobody answers at all', async () => {
    await server.close();
    await expect(api.whoami()).rejects.toMatchObject({ status: 0, code: 'ServerUnreachable' });
    await expect(api.whoami()).rejects.toThrow('Your notebook server does not answer.');
  });
});
