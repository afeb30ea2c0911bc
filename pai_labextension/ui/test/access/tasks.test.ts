import { describe, expect, it } from 'vitest';

import { pathOf, runningTasks } from '../../console/access/tasks';
import { detail, job, taskStatus } from '../notebookServer';

const running = detail({
  taskRoles: {
    master: { taskStatuses: [status(0, 'SUCCEEDED', {})] },
    worker: {
      taskStatuses: [
        status(0, 'RUNNING', { http: '30000', ssh: '30001', jupyter: '30002,30003' }),
        status(1, 'RUNNING', { http: '30000', ssh: '30001' })
      ]
    }
  }
});

function status(taskIndex: number, taskState: 'RUNNING' | 'SUCCEEDED', containerPorts: Record<string, string>) {
  return taskStatus({ taskIndex, taskState, containerPorts });
}

describe('the tasks of a job', () => {
  it('are those that run, with the ports that their roles list', () => {
    expect(runningTasks(job(), running)).toEqual([
      { user: 'alice', job: 'train', task: 'worker-0', ports: ['jupyter'] },
      { user: 'alice', job: 'train', task: 'worker-1', ports: [] }
    ]);
  });

  it('have addresses, whatever their owner is called', () => {
    expect(pathOf({ user: '王 小/明', job: 'x~1', task: 'a-0' })).toBe('%E7%8E%8B%20%E5%B0%8F%2F%E6%98%8E/x~1/a-0');
  });
});
