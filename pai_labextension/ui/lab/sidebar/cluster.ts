// What is known of the cluster: its machines, its virtual clusters, and how many GPUs were taken over the last day.

import { Client, INode, IVirtualClusters } from '../../console/data/client';
import { IDisposable, Polled, Signal } from '../../console/data/store';
import { IHeld, UsageModel } from './usage';

/** A virtual cluster: what it has of the GPUs, or of the CPUs where there are no GPUs. */
export interface IVirtualCluster extends IHeld {
  readonly name: string;
  readonly of: 'GPUs' | 'vCores';
  /** What it is sure to get, and what it may have with what it borrows. */
  readonly guaranteed: number;
  readonly most: number;
  readonly running: number;
  readonly waiting: number;
  readonly stopped: boolean;
  /** Shorter jobs come first in its queue; otherwise it is first come, first served. */
  readonly shorterFirst: boolean;
  /** Who has used less comes first, and half of it counts after so many hours; 0: that does not count. */
  readonly fairShareHours: number;
  /** Those that need least GPU time to their end come first, and stop others. */
  readonly shortestRemaining: boolean;
  /** GPU hours after which a job goes to the next level; empty: there are no levels. */
  readonly levelGpuHours: readonly number[];
  /** `pack`: what starts fills machines; `spread`: it gets the emptiest ones. */
  readonly placement: 'pack' | 'spread';
  /** What the person in front has used: GPU hours, and per cent of what all users have. */
  readonly usedLately: { readonly gpuHours: number; readonly percent: number } | null;
}

export class ClusterModel implements IDisposable {
  readonly machines: Polled<readonly INode[]>;
  readonly virtualClusters: Polled<readonly IVirtualCluster[]>;
  readonly usage: UsageModel;

  constructor(api: Client) {
    this.machines = new Polled(() => api.nodes());
    this.virtualClusters = new Polled(async () => described(await api.virtualClusters()));
    this.usage = new UsageModel(api);
    this.parts = [this.machines, this.virtualClusters, this.usage];
    this.parts.forEach(part => part.changed.connect(() => this.changed.emit()));
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.machines.isDisposed;
  }

  /** Ask now; resolves when answered. */
  async refresh(): Promise<void> {
    await Promise.all(this.parts.map(part => part.refresh()));
  }

  /** Note that it came into view, or went. */
  setShown(shown: boolean): void {
    this.parts.forEach(part => part.setShown(shown));
  }

  dispose(): void {
    this.parts.forEach(part => part.dispose());
    this.changed.clear();
  }

  private readonly parts: readonly Polled<unknown>[];
}

/** Return the virtual clusters by name, with what per cent mean in GPUs. */
export function described(clusters: IVirtualClusters): IVirtualCluster[] {
  return Object.entries(clusters)
    .map(([name, cluster]) => {
      const of = cluster.resourcesTotal.GPUs > 0 ? ('GPUs' as const) : ('vCores' as const);
      const total = cluster.resourcesTotal[of];
      const share = (percent: number) => Math.floor((total * percent) / 100);
      return {
        name,
        of,
        used: cluster.resourcesUsed[of],
        total,
        guaranteed: share(cluster.capacity),
        most: share(cluster.maxCapacity),
        running: cluster.numActiveJobs,
        waiting: cluster.numPendingJobs,
        stopped: cluster.status === 'STOPPED',
        shorterFirst: cluster.shorterFirst > 0,
        fairShareHours: cluster.fairShareHours,
        shortestRemaining: cluster.shortestRemaining,
        levelGpuHours: cluster.levelGpuHours,
        placement: cluster.placement,
        usedLately: cluster.usedLately ?? null
      };
    })
    .sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
}

/** Return what the machines have together of each type of GPU, by type. */
export function gpuTypes(nodes: readonly INode[]): (IHeld & { readonly type: string })[] {
  const types = new Map<string, { used: number; total: number }>();
  for (const gpu of nodes.flatMap(node => node.gpus)) {
    const held = types.get(gpu.type) ?? { used: 0, total: 0 };
    held.total += 1;
    held.used += gpu.job === null ? 0 : 1;
    types.set(gpu.type, held);
  }
  return [...types].map(([type, held]) => ({ type, ...held })).sort((one, other) => one.type.localeCompare(other.type));
}
