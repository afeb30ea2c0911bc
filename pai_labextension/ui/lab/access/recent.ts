// Which tasks were chosen last, across sessions of the browser.

import { IStateDB } from '@jupyterlab/statedb';

import { ITask } from '../../console/data/client';
import { keyOf } from '../../console/access/tasks';

const KEY = 'pai-labextension:recent-tasks';
/** Choices that are kept. */
const KEPT = 50;

/** Remembers choices, the newest first; without a state database until the page is left. */
export class RecentTasks {
  constructor(private readonly state: IStateDB | null) {}

  /** Return the one of these tasks that was chosen last; `undefined` where none of them ever was. */
  async newestOf<T extends ITask>(tasks: readonly T[]): Promise<T | undefined> {
    for (const key of await this.read()) {
      const found = tasks.find(task => keyOf(task) === key);
      if (found) {
        return found;
      }
    }
    return undefined;
  }

  async add(task: ITask): Promise<void> {
    const others = (await this.read()).filter(key => key !== keyOf(task));
    this.keys = [keyOf(task), ...others].slice(0, KEPT);
    await this.state?.save(KEY, [...this.keys]);
  }

  private async read(): Promise<readonly string[]> {
    if (this.keys === null) {
      const saved = await this.state?.fetch(KEY).catch(() => undefined);
      this.keys = Array.isArray(saved) ? saved.filter(key => typeof key === 'string') : [];
    }
    return this.keys;
  }

  private keys: readonly string[] | null = null;
}
