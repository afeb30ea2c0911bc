// Logs that are shown together: of all tasks or of a role's; of many tasks, so many at a time.

import { IAttemptTask } from '../../../console/data/client';
import { ITaskRow } from '../facts';

/** Tasks whose logs are shown together: each is asked for by itself. */
export const MOST_TOGETHER = 32;

/** Return the tasks of a role, in parts that can be shown together and are about as large; `role` empty: of all. */
export function partsOf(rows: readonly ITaskRow[], role: string, most = MOST_TOGETHER): ITaskRow[][] {
  const found = rows.filter(row => role === '' || row.role === role);
  const parts = Math.ceil(found.length / most);
  const begin = (part: number) => Math.round((part * found.length) / parts);
  return Array.from({ length: parts }, (_, part) => found.slice(begin(part), begin(part + 1)));
}

/** Name a task as the list of tasks does. */
export function keyOf({ role, index }: IAttemptTask): string {
  return `${role}-${index}`;
}
