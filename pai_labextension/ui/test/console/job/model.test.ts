// What is known of one job, asked of a real HTTP server.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { JobModel } from '../../../console/data/job';
import { AttemptInfo } from '../../../console/generated/types.gen';
import { LogModel } from '../../../console/job/log/model';
import { attempt, clientOf, detail, jobStatus, NotebookServer, taskStatus } from '../../notebookServer';

const JOB = 'GET user/alice/jobs/one';
const ATTEMPTS = `${JOB}/attempts`;
const WITHOUT_TASKS = `${ATTEMPTS}?tasks=0`;

describe('JobModel', () => {
  let server: NotebookServer;
  let model: JobModel;

  beforeEach(async () => {
    server = await NotebookServer.open();
    server.answers[JOB] = [200, detail({ name: 'one' })];
    server.answers[ATTEMPTS] = [200, [attempt()]];
    model = new JobModel(clientOf(server.settings), { username: 'alice', name: 'one' });
  });

  afterEach(async () => {
    model.dispose();
    await server.close();
  });

  it('asks for the job and its attempts when a page is opened', async () => {
    await model.refresh();
    expect(server.requests.sort()).toEqual([JOB, WITHOUT_TASKS]);
    expect(model.known?.detail.name).toBe('one');
    expect(model.known?.attempts).toHaveLength(1);
  });

  it('asks but once when it is told to begin before its page is in view', async () => {
    model.begin();
    expect(model.known).toBeNull();
    await model.refresh();
    expect(server.requests.sort()).toEqual([JOB, WITHOUT_TASKS]);
    expect(model.known?.detail.name).toBe('one');
  });

  it('says what went wrong with a question that was begun, and asks again', async () => {
    server.answers[JOB] = [503, { code: 'Down', message: 'Not now.' }];
    model.begin();
    await model.refresh();
    expect(model.error).toBe('Not now.');
    server.answers[JOB] = [200, detail({ name: 'one' })];
    await model.refresh();
    expect(model.known?.detail.name).toBe('one');
  });

  it('asks for the tasks of an attempt by itself', async () => {
    server.answers[ATTEMPTS] = url => [200, url.endsWith('attempt=3') ? [attempt({ attempt: 3 })] : []];
    expect(await model.client.tasksOf(model.name, 3)).toEqual(attempt().taskRoles);
    expect(await model.client.tasksOf(model.name, 4)).toEqual({});
  });

  it('asks for the attempts again only when the job has changed, and keeps what is as it was', async () => {
    await model.refresh();
    // the attempts may have been answered before the job
    await model.refresh();
    const { detail: before, attempts } = model.known!;
    server.asked.length = 0;
    await model.refresh();
    expect(server.requests).toEqual([JOB]);
    expect(model.known!.detail).toBe(before);
    expect(model.known!.attempts).toBe(attempts);

    const changed = detail({ name: 'one', jobStatus: jobStatus({ state: 'SUCCEEDED', subState: 'ENDED' }) });
    server.answers[JOB] = [200, changed];
    server.answers[ATTEMPTS] = [200, [attempt({ state: 'SUCCEEDED' })]];
    await model.refresh();
    expect(model.ended).toBe(true);
    expect(model.known!.attempts[0]!.state).toBe('SUCCEEDED');
  });

  it('asks for the attempts again after the job, where the first answers may have crossed', async () => {
    const ended = detail({ name: 'one', jobStatus: jobStatus({ state: 'SUCCEEDED', subState: 'ENDED' }) });
    server.answers[JOB] = [200, ended];
    await model.refresh();
    expect(model.known!.attempts[0]!.state).toBe('RUNNING');
    server.answers[ATTEMPTS] = [200, [attempt({ state: 'SUCCEEDED' })]];
    await model.refresh();
    expect(model.known!.attempts[0]!.state).toBe('SUCCEEDED');
  });

  it('notes that the job was deleted', async () => {
    await model.refresh();
    server.answers[JOB] = [404, { code: 'NoJobError', message: 'There is no job “one”.' }];
    await model.refresh();
    expect(model.gone).toBe(true);
  });

  it('has the log of the last attempt, of the task that decided it, until another one is chosen', async () => {
    const log = new LogModel(model);
    const roles = (attempts: AttemptInfo[]) => {
      server.answers[ATTEMPTS] = [200, attempts];
      const taskRoles = { worker: { taskRoleStatus: { name: 'worker' }, taskStatuses: [taskStatus()] } };
      // (the attempts are asked for again where the job has changed)
      const status = jobStatus({ createdTime: attempts.length });
      server.answers[JOB] = [200, detail({ name: 'one', jobStatus: status, taskRoles })];
    };
    roles([attempt()]);
    await model.refresh();
    expect(log.choice.tasks).toEqual([{ role: 'worker', index: 0, attempt: 0 }]);
    roles([attempt(), attempt({ attempt: 1, trigger: { taskRole: 'ps', taskIndex: 2 } })]);
    await model.refresh();
    expect(log.choice.tasks).toEqual([{ role: 'ps', index: 2, attempt: 1 }]);
    log.chooseTask({ role: 'worker', index: 0, attempt: 0 });
    roles([attempt(), attempt(), attempt({ attempt: 2 })]);
    await model.refresh();
    expect(model.known!.attempts).toHaveLength(3);
    expect(log.choice.tasks).toEqual([{ role: 'worker', index: 0, attempt: 0 }]);
    log.dispose();
  });
});
