import { StateDB } from '@jupyterlab/statedb';
import { describe, expect, it } from 'vitest';

import { RecentTasks } from '../../lab/access/recent';

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
