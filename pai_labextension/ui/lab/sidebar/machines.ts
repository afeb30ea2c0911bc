// The machines of the cluster: what is free on each, whose jobs are there, and those that somebody looks for.

import { INode } from '../../console/data/client';
import { Polled } from '../../console/data/store';

/** The machines as last heard. */
export type Machines = Polled<readonly INode[]>;

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
