import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { JobPorts } from '../../../console/access/ports';
import { JobsModel } from '../../../console/data/jobs';
import { clientOf, detail, job, NotebookServer, taskStatus, user } from '../../notebookServer';

function running(labels: string[]) {
  const containerPorts = Object.fromEntries([...labels, 'http', 'ssh'].map(label => [label, '30000']));
  return detail({ taskRoles: { worker: { taskStatuses: [taskStatus({ containerPorts })] } } });
}

describe('the ports of the listed jobs', () => {
  let server: NotebookServer;
  let jobs: JobsModel;
  let ports: JobPorts;

  beforeEach(async () => {
    server = await NotebookServer.open();
    server.answers['GET user'] = [200, user()];
    server.answers['GET jobs'] = [200, [job(), job({ name: 'over', state: 'SUCCEEDED' })]];
    server.answers['GET user/alice/jobs/train'] = [200, running(['tensorboard'])];
    jobs = new JobsModel(clientOf(server.settings));
    ports = new JobPorts(jobs, clientOf(server.settings));
  });

  afterEach(async () => {
    ports.dispose();
    jobs.dispose();
    await server.close();
  });

  function changed(): Promise<void> {
    return new Promise(resolve => ports.changed.connect(() => resolve()));
  }

  it('are asked for when the list is in view, of jobs that run', async () => {
    await jobs.refresh();
    expect(server.requests.some(request => request.includes('jobs/'))).toBe(false);
    const heard = changed();
    ports.setShown(true);
    await heard;
    const [task] = ports.of(job());
    expect(task).toMatchObject({ task: 'worker-0', ports: ['tensorboard'] });
    expect(ports.url(task!, 'a b')).toMatch(/\/user\/alice\/pai\/ports\/alice\/train\/worker-0\/a%20b\/$/);
    expect(ports.of(job({ name: 'over' }))).toEqual([]);
    expect(server.requests).not.toContain('GET user/alice/jobs/over');
  });

  it('are asked for at once when another job begins to run', async () => {
    await jobs.refresh();
    const heard = changed();
    ports.setShown(true);
    await heard;
    server.answers['GET jobs'] = [200, [job({ name: 'second' }), job()]];
    server.answers['GET user/alice/jobs/second'] = [200, running(['jupyter'])];
    const again = changed();
    await jobs.refresh();
    await again;
    expect(ports.of(job({ name: 'second' }))[0]!.ports).toEqual(['jupyter']);
  });
});
