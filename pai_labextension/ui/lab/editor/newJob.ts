// What an empty editor begins with, and what a task role that is added is like.

import { textOf } from './text';

/** What a task asks for where nobody has said anything: enough for Python and its libraries. */
const ENOUGH = { taskNumber: 1, cpuNumber: 1, memoryMB: 1024, gpuNumber: 0, command: '' };

/** Return the job that an empty editor begins with; where tasks have no container, its image is one by name only. */
export function emptyJob(imageNeeded: boolean, name: string): string {
  return textOf({
    jobName: name,
    image: imageNeeded ? '' : 'local/python',
    virtualCluster: 'default',
    taskRoles: [{ name: 'main', ...ENOUGH }]
  });
}

/** Return a task role like another of them, or a blank one, with a name that none of them has. */
export function roleLike(roles: readonly Record<string, unknown>[], index?: number): Record<string, unknown> {
  const role = index === undefined ? { name: '', ...ENOUGH } : structuredClone(roles[index]!);
  const taken = new Set(roles.map(({ name }) => name));
  const stem = (typeof role.name === 'string' ? role.name : '').replace(/_?\d+$/, '') || 'task';
  let number = roles.length + 1;
  while (taken.has(`${stem}_${number}`)) {
    number += 1;
  }
  return { ...role, name: `${stem}_${number}` };
}
