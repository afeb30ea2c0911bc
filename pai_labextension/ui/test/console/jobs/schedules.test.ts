import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { ISchedule } from '../../../console/data/client';
import { SchedulesModel } from '../../../console/jobs/schedules';
import { clientOf, NotebookServer, user } from '../../notebookServer';

const nightly: ISchedule = {
  ...{ name: 'nightly', username: 'alice', cron: '30 2 * * *', timeZone: 'UTC', overlap: 'skip' },
  ...{ paused: false, createdTime: 1, nextTime: 2, lastRun: null }
};
const path = 'user/alice/schedules/nightly';

describe('SchedulesModel', () => {
  let server: NotebookServer;
  let model: SchedulesModel;

  beforeEach(async () => {
    server = await NotebookServer.open();
    server.answers['GET user'] = [200, user()];
    server.answers['GET user/alice/schedules'] = [200, [nightly]];
    model = new SchedulesModel(clientOf(server.settings));
  });

  afterEach(async () => {
    model.dispose();
    await server.close();
  });

  it('lists what the person has', async () => {
    await model.refresh();
    expect(model.answer).toEqual([nightly]);
  });

  it('lists nothing where the scheduler knows of none', async () => {
    server.answers['GET user/alice/schedules'] = [404, { code: 'NoApiError', message: 'There is no such thing here.' }];
    await model.refresh();
    expect([model.answer, model.error]).toEqual([[], '']);
  });

  it('asks again after each change', async () => {
    server.answers[`PUT ${path}/state`] = [200, { ...nightly, paused: true }];
    server.answers[`POST ${path}/runs`] = [202, { job: 'nightly-1' }];
    server.answers[`DELETE ${path}`] = [204, null];
    await model.pause(nightly, true);
    expect(await model.run(nightly)).toBe('nightly-1');
    await model.delete(nightly);
    const list = 'GET user/alice/schedules';
    expect(server.requests.filter(asked => asked !== 'GET user')).toEqual([
      ...[`PUT ${path}/state`, list, `POST ${path}/runs`, list, `DELETE ${path}`, list]
    ]);
  });

  it('tells why something was refused, until somebody looks anew', async () => {
    server.answers[`POST ${path}/runs`] = [403, { code: 'ForbiddenUserError', message: 'Not open to you.' }];
    expect(await model.run(nightly)).toBeUndefined();
    expect(model.error).toBe('Not open to you.');
    model.setShown(true);
    expect(model.error).toBe('');
  });
});
