// What is known of the cluster: its machines, its virtual clusters, its maintenance, and its GPUs over the last day.

import { ITranslation } from '../host';
import { localText } from '../kit/time';
import { Client, INode, IVirtualClusters } from './client';
import { clusterChanges, IDisposable, Polled, Signal } from './store';

/** What one has of something, of how much. */
export interface IHeld {
  readonly used: number;
  readonly total: number;
}

/** A virtual cluster: what it has of the GPUs, or of the CPUs where there are no GPUs. */
export interface IVirtualCluster extends IHeld {
  readonly name: string;
  readonly of: 'GPUs' | 'vCores';
  /** What it is sure to get, and what it may have with what it borrows. */
  readonly guaranteed: number;
  readonly most: number;
  /** The same in per cent of the cluster, as administrators set them. */
  readonly capacity: number;
  readonly maxCapacity: number;
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
    const followed = () => clusterChanges(api);
    this.machines = new Polled(() => api.nodes(), undefined, followed);
    this.virtualClusters = new Polled(async () => described(await api.virtualClusters()), undefined, followed);
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
        capacity: cluster.capacity,
        maxCapacity: cluster.maxCapacity,
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

// The machines: what is free on each, whose jobs are there, and those that somebody looks for.

/** What there is of something, and what is free of it. */
export interface IShare {
  readonly free: number;
  readonly total: number;
}

/** The GPUs of one type on one machine, in its order. */
export interface IGpus extends IShare {
  readonly type: string;
  /** Declared, not found. */
  readonly simulated: boolean;
  readonly holders: readonly IHolder[];
}

/** Who holds a GPU: nobody, a job that one may see ("USER~JOB"), or another user; null: the name is not shown. */
export interface IHolder {
  readonly held: 'no' | 'known' | 'busy';
  readonly name: string | null;
}

/** Return whether a machine may get something new. */
export function takesJobs(node: INode): boolean {
  return node.state === 'READY' && !node.closed;
}

/** Return what there is and what is free of something of which a machine has so much. */
export function share(node: INode, kind: 'cpus' | 'memoryMB' | 'storageGB'): IShare {
  const total = node.total[kind];
  return { free: Math.max(0, total - node.used[kind]), total };
}

/** Return what there is and what is free of the disk that tasks fill on a machine, in MB; null: it is not known. */
export function diskOf(node: INode): IShare | null {
  return node.disk && { free: node.disk.freeMB, total: node.disk.totalMB };
}

/** Return a machine's GPUs by type, in alphabetical order. */
export function gpusOf(node: INode): IGpus[] {
  const types = [...new Set(node.gpus.map(gpu => gpu.type))].sort();
  return types.map(type => {
    const gpus = node.gpus.filter(gpu => gpu.type === type);
    const free = gpus.filter(gpu => gpu.job === null).length;
    const simulated = gpus.some(gpu => gpu.simulated);
    return { type, free, total: gpus.length, simulated, holders: gpus.map(holderOf) };
  });
}

/** Return who holds a machine's GPUs, as far as one may know, each once: jobs as "USER~JOB", other users by name. */
export function holdersOn(node: INode): string[] {
  const names = node.gpus.flatMap(gpu => holderOf(gpu).name ?? []);
  return [...new Set(names)].sort();
}

function holderOf({ job, user }: INode['gpus'][number]): IHolder {
  if (job === null) {
    return { held: 'no', name: null };
  }
  return job === 'busy' ? { held: 'busy', name: user } : { held: 'known', name: job };
}

/** Return what all machines have together; free is what is free where something new may start. */
export function sum(nodes: readonly INode[], sharesOf: (node: INode) => readonly IShare[]): IShare {
  const all = { free: 0, total: 0 };
  for (const node of nodes) {
    for (const { free, total } of sharesOf(node)) {
      all.free += takesJobs(node) ? free : 0;
      all.total += total;
    }
  }
  return all;
}

/**
 * Return those that somebody looks for, which get something new first, then by name ("node-2" before "node-10").
 *
 * @param words - each stands in the name, the rack, a GPU type or a job; upper or lower case
 */
export function select(nodes: readonly INode[], words: string): INode[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (node: INode) =>
    [node.name, node.rack, ...node.gpus.map(gpu => gpu.type), ...holdersOn(node)].join('\n').toLowerCase();
  return nodes
    .filter(node => wanted.every(word => text(node).includes(word)))
    .sort(
      (one, other) =>
        Number(takesJobs(other)) - Number(takesJobs(one)) ||
        one.name.localeCompare(other.name, undefined, { numeric: true })
    );
}

/** The GPUs of one type in the whole cluster; free are those where something new may start. */
export interface IGpuType extends IHeld, IShare {
  readonly type: string;
  readonly simulated: boolean;
}

/** Return what the machines have together of each type of GPU, by type. */
export function gpuTypes(nodes: readonly INode[]): IGpuType[] {
  const types = [...new Set(nodes.flatMap(node => node.gpus.map(gpu => gpu.type)))].sort();
  return types.map(type => {
    const ofType = (node: INode) => gpusOf(node).filter(gpus => gpus.type === type);
    const all = nodes.flatMap(ofType);
    const used = all.reduce((many, { free, total }) => many + total - free, 0);
    return { type, used, ...sum(nodes, ofType), simulated: all.every(gpus => gpus.simulated) };
  });
}

// How many GPUs were taken over the last day.

/** How much of the past is kept, and how often the newest is asked for; both in ms. */
export const DAY = 24 * 3_600_000;
const EVERY = 60_000;

/** The GPUs at a time (ms since the epoch). */
export interface ISample extends IHeld {
  readonly time: number;
}

/** Oldest first; `interval` in ms. */
export interface IUsage {
  readonly interval: number;
  readonly samples: readonly ISample[];
}

/** Asks for what is new since it asked last. */
export class UsageModel extends Polled<IUsage> {
  constructor(api: Pick<Client, 'clusterUsage'>) {
    super(async () => {
      const known = this.answer?.samples ?? [];
      const { interval, gpus } = await api.clusterUsage(known[known.length - 1]?.time ?? 0);
      const fresh = gpus.map(([time, used, total]) => ({ time: time ?? 0, used: used ?? 0, total: total ?? 0 }));
      const all = [...known, ...fresh];
      const newest = all[all.length - 1]?.time ?? 0;
      return { interval: interval * 1000, samples: all.filter(({ time }) => time > newest - DAY) };
    }, EVERY);
  }
}

/**
 * Return the last day up to `time` (ms since the epoch), with what is taken at that time as its last sample.
 *
 * The samples are a minute apart: what started since the last one would be missing.
 */
export function untilNow({ interval, samples }: IUsage, held: readonly IHeld[], time: number): IUsage {
  // (the browser's clock may be behind that of the scheduler)
  const now = Math.max(time, samples[samples.length - 1]?.time ?? 0);
  const sum = (counts: number[]) => counts.reduce((one, other) => one + other, 0);
  const present = { time: now, used: sum(held.map(each => each.used)), total: sum(held.map(each => each.total)) };
  return { interval, samples: [...samples.filter(({ time }) => time > now - DAY), present] };
}

// The maintenance that is planned or under way, each once, with its machines.

/** So many machines are named; of more it is said how many. */
const NAMED = 5;

type Window = NonNullable<INode['maintenance']>[number];

/** Maintenance, and the machines that it is of. */
export interface IMaintenance extends Pick<Window, 'name' | 'begin' | 'end' | 'reason'> {
  readonly machines: readonly string[];
  /** It is why some of them take nothing new now. */
  readonly begun: boolean;
}

/** Return what is planned for any machine or under way, what begins first before the others. */
export function maintenanceOf(nodes: readonly Pick<INode, 'name' | 'closed' | 'maintenance'>[]): IMaintenance[] {
  const found = new Map<string, Window & { machines: string[]; begun: boolean }>();
  for (const node of nodes) {
    for (const window of node.maintenance ?? []) {
      const known = found.get(window.name) ?? { ...window, machines: [], begun: false };
      known.machines.push(node.name);
      // (only maintenance closes until a time)
      known.begun ||= node.closed?.until === window.end;
      found.set(window.name, known);
    }
  }
  return [...found.values()].sort((one, other) => one.begin - other.begin || one.end - other.end);
}

/** Return maintenance as a sentence. */
export function maintenanceText(one: IMaintenance, trans: ITranslation, language: string): string {
  const [begin, end] = [one.begin, one.end].map(time => localText(new Date(time), language, 'minutes'));
  const names = one.machines.slice(0, NAMED).join(', ');
  const more = one.machines.length - NAMED;
  const machines = more > 0 ? trans.__('%1 and %2 more', names, more) : names;
  return one.begun
    ? trans.__('In maintenance until %1: %2 (%3)', end, machines, one.reason)
    : trans.__('Maintenance from %1 to %2: %3 (%4)', begin, end, machines, one.reason);
}
