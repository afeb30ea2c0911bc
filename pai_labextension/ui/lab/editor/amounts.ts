// What a job asks for against what is free, and what the scheduler says about its start, in words.

import { INode, IValidation } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { gpusOf, IShare, share, sum, takesJobs } from '../../console/data/cluster';
import { isObject, valueAt } from './text';

/** What all tasks of a job ask for together. */
export interface IAsked {
  readonly tasks: number;
  readonly gpus: number;
  readonly cpus: number;
  readonly memoryMB: number;
}

/** What counts where a task role says nothing. */
const FALLBACKS = { taskNumber: 1, cpuNumber: 1, memoryMB: 100, gpuNumber: 0 };

/** Add up what a job asks for; what is no number yet counts as if it was not there. */
export function askedFor(config: unknown): IAsked {
  const asked = { tasks: 0, gpus: 0, cpus: 0, memoryMB: 0 };
  const roles = valueAt(config, ['taskRoles']);
  for (const role of Array.isArray(roles) ? roles.filter(isObject) : []) {
    const number = (name: keyof typeof FALLBACKS) => (typeof role[name] === 'number' ? role[name] : FALLBACKS[name]);
    const tasks = number('taskNumber');
    asked.tasks += tasks;
    asked.gpus += tasks * number('gpuNumber');
    asked.cpus += tasks * number('cpuNumber');
    asked.memoryMB += tasks * number('memoryMB');
  }
  return asked;
}

/** The GPUs of one type in the whole cluster. */
export interface IGpuType extends IShare {
  readonly type: string;
  readonly simulated: boolean;
}

/** Count the GPUs of all machines by type. */
export function gpuTypes(nodes: readonly INode[]): IGpuType[] {
  const types = [...new Set(nodes.flatMap(node => node.gpus.map(gpu => gpu.type)))].sort();
  return types.map(type => ({
    type,
    ...sum(nodes, node => gpusOf(node).filter(gpus => gpus.type === type)),
    simulated: nodes.every(node => gpusOf(node).every(gpus => gpus.type !== type || gpus.simulated))
  }));
}

/** Something that is asked for, and what there is of it. */
export interface IAmount extends IShare {
  readonly kind: 'gpus' | 'cpus' | 'memoryMB';
  readonly asked: number;
}

/** Set what a job asks for against what is free where something new may start; GPUs of its type only. */
export function amounts(config: unknown, nodes: readonly INode[]): IAmount[] {
  const asked = askedFor(config);
  const type = valueAt(config, ['gpuType']);
  const gpus = gpuTypes(nodes).filter(one => !type || one.type === type);
  const total = gpus.reduce((all, one) => all + one.total, 0);
  const free = gpus.reduce((all, one) => all + one.free, 0);
  const open = nodes.filter(takesJobs);
  return [
    { kind: 'gpus', asked: asked.gpus, free, total },
    { kind: 'cpus', asked: asked.cpus, ...sum(open, node => [share(node, 'cpus')]) },
    { kind: 'memoryMB', asked: asked.memoryMB, ...sum(open, node => [share(node, 'memoryMB')]) }
  ];
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** Write a time to wait as people say it, rounded up. */
export function aboutSoLong(seconds: number, trans: ITranslation): string {
  if (seconds <= 2 * HOUR) {
    return trans._n('about %1 minute', 'about %1 minutes', Math.max(1, Math.ceil(seconds / MINUTE)));
  }
  return seconds <= 2 * DAY
    ? trans._n('about %1 hour', 'about %1 hours', Math.ceil(seconds / HOUR))
    : trans._n('about %1 day', 'about %1 days', Math.ceil(seconds / DAY));
}

/** Return what submitting would do: whether it starts now, later or never, when, and why. */
export function forecastText(answer: IValidation, trans: ITranslation): string {
  const sentences = [
    answer.fits === 'now'
      ? trans.__('This job starts now.')
      : answer.fits === 'later'
        ? trans.__('This job will wait.')
        : trans.__('This job cannot run here as it is.'),
    answer.reason
  ];
  if (answer.borrows && (answer.fits !== 'now' || !answer.reason)) {
    sentences.push(trans.__('It would borrow what is idle, and may be stopped for those it belongs to.'));
  }
  if (answer.fits === 'later' && answer.startsWithin !== null) {
    sentences.push(trans.__('It starts in %1.', aboutSoLong(answer.startsWithin, trans)));
  }
  if (answer.startsNowIn.length > 0) {
    sentences.push(trans.__('It would start now in virtual cluster %1.', answer.startsNowIn.join(', ')));
  }
  return sentences.filter(Boolean).join(' ');
}
