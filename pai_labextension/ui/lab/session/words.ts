// What the status bar says of this notebook server: its use against its limits, and the time left.

import { ISession } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { ILimits, IUse } from './use';

const GB = 1024;

/** Say memory in GB, of small amounts with one digit after the point. */
export function gigabytes(megabytes: number): string {
  const number = megabytes / GB;
  return number < 10 ? number.toFixed(1).replace(/\.0$/, '') : number.toFixed(0);
}

/** Say how long something takes, in minutes, or hours and minutes, or days and hours. */
export function duration(ms: number, trans: ITranslation): string {
  const minutes = Math.max(0, Math.round(ms / 60_000));
  if (minutes < 60) {
    return trans._n('%1 minute', '%1 minutes', minutes);
  }
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? trans.__('%1 h %2 min', hours, minutes % 60)
    : trans.__('%1 d %2 h', Math.floor(hours / 24), hours % 24);
}

/** Return what is used, short; a part that is not known is left out. */
export function describeUse(use: IUse | null, limits: ILimits, trans: ITranslation): string {
  const parts: string[] = [];
  if (use?.cpuPercent !== undefined && use.cpuPercent !== null) {
    parts.push(trans.__('CPU %1 %', Math.round(use.cpuPercent / (limits.cpus ?? 1))));
  }
  if (use?.memoryMB !== undefined && use.memoryMB !== null) {
    parts.push(
      limits.memoryMB
        ? trans.__('%1 of %2 GB', gigabytes(use.memoryMB), gigabytes(limits.memoryMB))
        : trans.__('%1 GB', gigabytes(use.memoryMB))
    );
  }
  if (limits.gpus && use?.gpuPercent !== undefined && use.gpuPercent !== null) {
    parts.push(trans.__('GPU %1 %', Math.round(use.gpuPercent)));
    if (use.gpuMemoryMB !== null) {
      parts.push(
        use.gpuMemoryTotalMB
          ? trans.__('%1 of %2 GB on the GPU', gigabytes(use.gpuMemoryMB), gigabytes(use.gpuMemoryTotalMB))
          : trans.__('%1 GB on the GPU', gigabytes(use.gpuMemoryMB))
      );
    }
  }
  return parts.join(' · ');
}

/** Return how long the session may still run, short; empty where nothing ends it. */
export function leftText(left: number | null, trans: ITranslation): string {
  return left === null ? '' : trans.__('%1 left', duration(left, trans));
}

/** Explain what the status bar says. */
export function explanation(
  use: IUse | null,
  limits: ILimits,
  session: ISession | null,
  left: number | null,
  trans: ITranslation
): string {
  const lines = [trans.__('What this notebook server uses of what it may use.')];
  if (limits.cpus) {
    lines.push(trans._n('It has %1 CPU: 100 % is all of it.', 'It has %1 CPUs: 100 % is all of them.', limits.cpus));
  }
  if (limits.gpus && use?.gpuPercent === null) {
    lines.push(trans.__('Its GPUs do not tell how much they are used.'));
  }
  if (session?.why) {
    lines.push(session.why);
  }
  if (left !== null) {
    const time = duration(left, trans);
    lines.push(
      session?.mayKeep ? trans.__('It ends in %1 unless it is kept.', time) : trans.__('It ends in %1.', time)
    );
  }
  return lines.join('\n');
}
