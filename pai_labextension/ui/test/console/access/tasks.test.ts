import { StateDB } from '@jupyterlab/statedb';
import { describe, expect, it } from 'vitest';

import { RecentTasks, runningTasks } from '../../../console/access/tasks';
import { detail, job, taskStatus } from '../../notebookServer';

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
});

const tasks = [0, 1, 2].map(index => ({ user: 'alice', job: 'train', task: `worker-${index}` }));

describe('the tasks that were chosen last', () => {
  it('are remembered across reloads, the newest first', async () => {
    const state = new StateDB();
    const recent = new RecentTasks(state);
    expect(await recent.newestOf(tasks)).toBeUndefined();
    await recent.add(tasks[2]!);
    await recent.add(tasks[1]!);
    expect(await new RecentTasks(state).newestOf(tasks)).toBe(tasks[1]);
    expect(await new RecentTasks(state).newestOf([tasks[0]!, tasks[2]!])).toBe(tasks[2]);
  });

  it('are forgotten when there are too many', async () => {
    const recent = new RecentTasks(null);
    for (let index = 0; index <= 50; index += 1) {
      await recent.add({ user: 'alice', job: 'train', task: `worker-${index}` });
    }
    expect(await recent.newestOf([tasks[0]!])).toBeUndefined();
    expect(await recent.newestOf([tasks[1]!])).toBe(tasks[1]);
  });

  it('may be nonsense, which is none', async () => {
    const state = new StateDB();
    await state.save('pai-labextension:recent-tasks', { a: 1 });
    expect(await new RecentTasks(state).newestOf(tasks)).toBeUndefined();
  });
});
