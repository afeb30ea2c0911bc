import { describe, expect, it } from 'vitest';

import { tasksOf } from '../../../console/data/job';
import { keyOf, partsOf } from '../../../console/job/log/bars';
import { taskStatus } from '../../notebookServer';

function role(count: number) {
  return {
    taskRoleStatus: { name: '' },
    taskStatuses: Array.from({ length: count }, (_, taskIndex) => taskStatus({ taskIndex }))
  };
}

const rows = tasksOf({ worker: role(64), ps: role(2) }, 0);

describe('logs that are shown together', () => {
  it('are all tasks’, or a role’s', () => {
    expect(partsOf(rows, 'ps').map(part => part.map(keyOf))).toEqual([['ps-0', 'ps-1']]);
    expect(partsOf(rows, '').flat()).toEqual(rows);
    expect(partsOf(rows, 'none')).toEqual([]);
  });

  it('are in parts about as large as one another, none too large', () => {
    expect(partsOf(rows, '').map(part => part.length)).toEqual([22, 22, 22]);
    expect(partsOf(rows, 'worker').map(part => part.length)).toEqual([32, 32]);
    expect(partsOf(rows, 'worker')[1]!.map(keyOf).at(0)).toBe('worker-32');
  });
});
