import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { OwnUse, readLimits } from '../../../console/session/notice';
import { clientOf, NotebookServer } from '../../notebookServer';

const METRICS = 'GET user/alice/jobs/notebook_1/taskRoles/notebook/tasks/0/metrics';

describe('the use of this server', () => {
  let server: NotebookServer;

  beforeEach(async () => {
    server = await NotebookServer.open();
    server.answers['GET user'] = [
      200,
      { username: 'alice', email: '', grouplist: [], extension: {}, admin: false, virtualCluster: [] }
    ];
  });

  afterEach(() => server.close());

  it('is what was measured last, and each measurement is read once', async () => {
    const own = new OwnUse(clientOf(server.settings), 'notebook_1');
    const cpuPercent = [
      [1000, 10],
      [2000, 20.5]
    ];
    const first = { cpuPercent, memoryMB: [[2000, 512]], gpuPercent: [] };
    server.answers[METRICS] = [200, { interval: 10, gpuMemoryTotalMB: null, series: first }];
    const seen = { cpuPercent: 20.5, memoryMB: 512, gpuPercent: null, gpuMemoryMB: null, gpuMemoryTotalMB: null };
    expect(await own.read()).toEqual(seen);
    const second = { gpuPercent: [[3000, 7]] };
    server.answers[METRICS] = [200, { interval: 10, gpuMemoryTotalMB: 81920, series: second }];
    expect(await own.read()).toEqual({ ...seen, gpuPercent: 7, gpuMemoryTotalMB: 81920 });
    expect(server.requests.filter(asked => asked.includes('metrics')).map(asked => asked.split('after=')[1])).toEqual([
      expect.stringMatching(/^0/),
      expect.stringMatching(/^2000/)
    ]);
  });

  it('has the limits that the server extension wrote, where it did', () => {
    expect(readLimits('{"cpus": 2, "gpus": 0}')).toEqual({ cpus: 2, gpus: 0 });
    expect(readLimits('')).toEqual({});
    expect(readLimits('null')).toEqual({});
  });
});
