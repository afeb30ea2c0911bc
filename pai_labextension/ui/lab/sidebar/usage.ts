// How many GPUs were taken over the last day: kept up to date, and as lines of a chart.

import { Client } from '../../console/data/client';
import { Polled } from '../../console/data/store';

/** What one has of something, of how much. */
export interface IHeld {
  readonly used: number;
  readonly total: number;
}

/** What the chart shows, and how often the newest is asked for; both in ms. */
const DAY = 24 * 3_600_000;
const EVERY = 60_000;
/** Samples that are further apart than so many intervals have a gap between them: the scheduler did not run. */
const GAP = 3;

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

/** The lines of a chart whose width and height are 1; y grows downwards, as SVG has it. */
export interface IChart {
  /** What was taken, as closed areas: one from gap to gap. */
  readonly areas: readonly string[];
  /** What there was. */
  readonly totals: readonly string[];
  /** What is taken at the end, as a point. */
  readonly point: string;
  /** The highest value. */
  readonly most: number;
  /** Times of its left and right edge. */
  readonly from: number;
  readonly to: number;
}

/** Draw the last day of what is known; `null` where there is nothing to draw. */
export function chart({ interval, samples }: IUsage): IChart | null {
  const last = samples[samples.length - 1];
  const most = Math.max(0, ...samples.map(({ used, total }) => Math.max(used, total)));
  if (last === undefined || most === 0) {
    return null;
  }
  const [from, to] = [last.time - DAY, last.time];
  const x = (time: number) => digits((time - from) / DAY);
  const y = (value: number) => digits(1 - value / most);
  const pieces = split(samples, interval * GAP);
  return {
    areas: pieces.map(piece => {
      const line = piece.map(({ time, used }) => `${x(time)},${y(used)}`);
      return `M${x(piece[0]!.time)},1 L${line.join(' ')} L${x(piece[piece.length - 1]!.time)},1 Z`;
    }),
    totals: pieces.map(piece => `M${piece.map(({ time, total }) => `${x(time)},${y(total)}`).join(' ')}`),
    // (a line of no length with round ends is a round point, however the drawing is stretched)
    point: `M1,${y(last.used)} h0`,
    most,
    from,
    to
  };
}

/** Return the sample that is nearest to a place of the chart, from 0 (left) to 1; `undefined`: there is none. */
export function nearest(samples: readonly ISample[], place: number): ISample | undefined {
  const last = samples[samples.length - 1];
  if (last === undefined) {
    return undefined;
  }
  const time = last.time - DAY * (1 - place);
  return samples.reduce((one, other) => (Math.abs(other.time - time) < Math.abs(one.time - time) ? other : one));
}

/** Return how much of the GPUs was taken on average, in per cent. */
export function meanUse(samples: readonly ISample[]): number {
  const [used, total] = samples.reduce(([u, t], sample) => [u + sample.used, t + sample.total], [0, 0]);
  return total > 0 ? Math.round((100 * used) / total) : 0;
}

function split(samples: readonly ISample[], gap: number): ISample[][] {
  const pieces: ISample[][] = [];
  for (const sample of samples) {
    const piece = pieces[pieces.length - 1];
    if (piece && sample.time - piece[piece.length - 1]!.time <= gap) {
      piece.push(sample);
    } else {
      pieces.push([sample]);
    }
  }
  return pieces;
}

function digits(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
