import { describe, expect, it } from 'vitest';

import { INode, IValidation } from '../../../console/data/client';
import { amounts, askedFor, forecastText } from '../../../console/editor/submit';
import { roleLike } from '../../../console/editor/text';
import { trans } from '../../notebookServer';

const gpu = (type: string, job: string | null) => ({ index: 0, type, simulated: false, job });
const node = (changes: Partial<INode>) =>
  ({
    ...{ name: 'a', rack: '', state: 'READY', closed: null, disk: null },
    total: { cpus: 8, memoryMB: 1000, storageGB: 0 },
    used: { cpus: 3, memoryMB: 400, storageGB: 0 },
    gpus: [gpu('P100', null), gpu('P100', 'busy'), gpu('V100', null)],
    ...changes
  }) as unknown as INode;
const NOW: IValidation = {
  errors: [],
  warnings: [],
  fits: 'now',
  reason: '',
  borrows: false,
  startsWithin: null,
  startsNowIn: []
};

describe('what a job asks for', () => {
  it('is the sum over its tasks; what is no number yet counts as said nothing', () => {
    const taskRoles = [{ taskNumber: 3, cpuNumber: 2, memoryMB: 10, gpuNumber: 1 }, { taskNumber: '2' }];
    expect(askedFor({ taskRoles })).toEqual({ tasks: 4, gpus: 3, cpus: 7, memoryMB: 130 });
    expect(askedFor({ taskRoles: 'none' })).toEqual({ tasks: 0, gpus: 0, cpus: 0, memoryMB: 0 });
  });

  it('stands against what is free, of its GPU type and where something may start', () => {
    const nodes = [node({}), node({ closed: { reason: 'repair' } as unknown as INode['closed'] })];
    const found = amounts({ gpuType: 'P100', taskRoles: [{ gpuNumber: 2 }] }, nodes);
    expect(found).toEqual([
      { kind: 'gpus', asked: 2, free: 1, total: 4 },
      { kind: 'cpus', asked: 1, free: 5, total: 8 },
      { kind: 'memoryMB', asked: 100, free: 600, total: 1000 }
    ]);
  });
});

describe('the forecast', () => {
  it.each([
    [{}, 'This job starts now.'],
    [
      { fits: 'later', reason: 'Third in the queue.', startsWithin: 1190 },
      'Third in the queue. It starts in about 20 minutes.'
    ],
    [{ fits: 'later', startsWithin: 10_000 }, 'This job will wait. It starts in about 3 hours.'],
    [{ fits: 'never', reason: 'No node has 9 GPUs.' }, 'This job cannot run here as it is. No node has 9 GPUs.'],
    [{ borrows: true }, 'may be stopped for those it belongs to'],
    [{ fits: 'later', startsNowIn: ['nlp'] }, 'It would start now in virtual cluster nlp.']
  ] as [Partial<IValidation>, string][])('is told in sentences: %j', (changes, said) => {
    expect(forecastText({ ...NOW, ...changes }, trans)).toContain(said);
  });
});

describe('a role that is added', () => {
  it('is like another, under a name of its own', () => {
    const roles = [{ name: 'worker', command: 'a' }, { name: 'worker_3' }];
    expect(roleLike(roles, 0)).toEqual({ name: 'worker_4', command: 'a' });
    expect(roleLike(roles)).toEqual({
      ...{ name: 'task_3', taskNumber: 1, cpuNumber: 1, memoryMB: 1024, gpuNumber: 0, command: '' }
    });
  });
});
