import { describe, expect, it } from 'vitest';

import { INode } from '../../../console/data/client';
import { described, gpuTypes } from '../../../console/data/cluster';

const resources = (GPUs: number, vCores: number) => ({ GPUs, vCores });
const cluster = {
  capacity: 60,
  maxCapacity: 100,
  numActiveJobs: 2,
  numPendingJobs: 3,
  resourcesUsed: resources(5, 20),
  resourcesTotal: resources(8, 64),
  status: 'RUNNING' as const,
  shorterFirst: 0,
  fairShareHours: 0,
  levelGpuHours: [],
  shortestRemaining: false,
  placement: 'pack' as const
};

describe('the virtual clusters', () => {
  it('are told in GPUs, whole ones', () => {
    const [vision] = described({ vision: cluster });
    expect(vision).toMatchObject({ of: 'GPUs', used: 5, total: 8, guaranteed: 4, most: 8, running: 2, waiting: 3 });
    expect(vision!.stopped).toBe(false);
  });

  it('are told in CPUs where there are no GPUs', () => {
    const [vision] = described({ vision: { ...cluster, resourcesTotal: resources(0, 64), status: 'STOPPED' } });
    expect(vision).toMatchObject({ of: 'vCores', used: 20, total: 64, guaranteed: 38, stopped: true });
  });

  it('say where shorter jobs come first', () => {
    const clusters = described({ fair: { ...cluster, shorterFirst: 10 }, plain: cluster });
    expect(clusters.map(({ shorterFirst }) => shorterFirst)).toEqual([true, false]);
  });

  it('say where users share by what they have used, and what one has used oneself', () => {
    const usedLately = { gpuHours: 12.5, percent: 30 };
    const [fair, plain] = described({ fair: { ...cluster, fairShareHours: 168, usedLately }, plain: cluster });
    expect(fair).toMatchObject({ fairShareHours: 168, usedLately });
    expect(plain).toMatchObject({ fairShareHours: 0, usedLately: null });
  });

  it('say which jobs stop others, and where what starts goes', () => {
    const other = { levelGpuHours: [1, 10], shortestRemaining: true, placement: 'spread' as const };
    const [one, plain] = described({ one: { ...cluster, ...other }, plain: cluster });
    expect(one).toMatchObject(other);
    expect(plain).toMatchObject({ levelGpuHours: [], shortestRemaining: false, placement: 'pack' });
  });

  it('come by name', () => {
    expect(described({ 'vc-10': cluster, 'vc-9': cluster }).map(({ name }) => name)).toEqual(['vc-9', 'vc-10']);
  });
});

describe('the GPUs of all machines', () => {
  it('are counted by type', () => {
    const gpu = (type: string, job: string | null) => ({ index: 0, type, simulated: false, job });
    const nodes = [
      { state: 'READY', closed: null, gpus: [gpu('V100', null), gpu('A100', 'busy')] },
      { state: 'READY', closed: null, gpus: [gpu('A100', 'alice~train'), gpu('A100', null)] }
    ] as unknown as INode[];
    expect(gpuTypes(nodes)).toEqual([
      { type: 'A100', used: 2, free: 1, total: 3, simulated: false },
      { type: 'V100', used: 0, free: 1, total: 1, simulated: false }
    ]);
  });
});
