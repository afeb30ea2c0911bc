import { describe, expect, it } from 'vitest';

import { INode } from '../../../console/data/client';
import { diskOf, gpusOf, holdersOn, select, share, sum } from '../../../console/data/cluster';

type Gpu = INode['gpus'][number];

function gpu(type: string, job: string | null = null, user: string | null = null): Gpu {
  return { index: 0, type, uuid: '', simulated: false, memoryMB: null, job, user };
}

/** Make a machine with the given differences. */
function node(changes: Partial<INode> = {}): INode {
  return {
    name: 'node-1',
    state: 'READY',
    closed: null,
    total: { cpus: 8, memoryMB: 16_000, storageGB: 100, gpus: {} },
    used: { cpus: 3, memoryMB: 6_000, storageGB: 20, gpus: {} },
    gpus: [],
    rack: '',
    disk: null,
    ...changes
  };
}

describe('what is free on a machine', () => {
  it('is what it has less what is used', () => {
    expect(share(node(), 'cpus')).toEqual({ free: 5, total: 8 });
    expect(share(node(), 'memoryMB')).toEqual({ free: 10_000, total: 16_000 });
    expect(share(node({ used: { cpus: 9, memoryMB: 0, storageGB: 0, gpus: {} } }), 'cpus').free).toBe(0);
  });

  it('is what was measured of its disk, if it was', () => {
    expect(diskOf(node({ disk: { freeMB: 30, totalMB: 40 } }))).toEqual({ free: 30, total: 40 });
    expect(diskOf(node())).toBeNull();
  });

  it('is said for each type of GPU', () => {
    const gpus = [gpu('V100', 'busy'), gpu('A100', 'alice~train'), { ...gpu('A100'), simulated: true }];
    expect(gpusOf(node({ gpus }))).toEqual([
      {
        type: 'A100',
        free: 1,
        total: 2,
        simulated: true,
        holders: [
          { held: 'known', name: 'alice~train' },
          { held: 'no', name: null }
        ]
      },
      { type: 'V100', free: 0, total: 1, simulated: false, holders: [{ held: 'busy', name: null }] }
    ]);
  });

  it('is summed up where something new may start', () => {
    for (const state of ['PAUSED', 'DRAINED', 'FULL', 'LOST'] as const) {
      const nodes = [node({ gpus: [gpu('A100')] }), node({ state, gpus: [gpu('A100'), gpu('V100', 'busy')] })];
      expect(sum(nodes, each => [share(each, 'cpus')])).toEqual({ free: 5, total: 16 });
      expect(sum(nodes, gpusOf)).toEqual({ free: 1, total: 3 });
    }
    expect(sum([], gpusOf)).toEqual({ free: 0, total: 0 });
  });
});

describe('the holders of the GPUs of a machine', () => {
  it('are jobs that one may see and users whose names are shown, each once', () => {
    const gpus = [gpu('A100', 'alice~train'), gpu('A100', 'busy'), gpu('A100', 'alice~train'), gpu('A100')];
    expect(holdersOn(node({ gpus: [...gpus, gpu('V100', 'busy', 'bob')] }))).toEqual(['alice~train', 'bob']);
  });
});

describe('the machines that somebody looks for', () => {
  const nodes = [
    node({ name: 'node-10', gpus: [gpu('A100', 'alice~train')] }),
    node({ name: 'node-2', rack: 'r7' }),
    node({ name: 'node-1', state: 'DRAINED', gpus: [gpu('A100')] })
  ];
  const names = (words: string) => select(nodes, words).map(each => each.name);

  it('begin with those that take jobs, in the order in which people count', () => {
    expect(names('')).toEqual(['node-2', 'node-10', 'node-1']);
  });

  it('have all the words, in whatever field', () => {
    expect(names('a100')).toEqual(['node-10', 'node-1']);
    expect(names('A100 TRAIN')).toEqual(['node-10']);
    expect(names(' R7 ')).toEqual(['node-2']);
    expect(names('node-3')).toEqual([]);
  });
});
