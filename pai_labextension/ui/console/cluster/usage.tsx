// The chart of the last day: how many GPUs were taken, of how many.

import * as React from 'react';

import { DAY, ISample, IUsage } from '../data/cluster';
import { useHost } from '../host';
import { localText } from '../kit/time';

/** Samples that are further apart than so many intervals have a gap between them: the scheduler did not run. */
const GAP = 3;

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

/** Shows the last day up to the present, which is its last sample; nothing where there are no GPUs. */
export function UsageChart({ usage }: { usage: IUsage }): React.ReactElement | null {
  const { trans, language } = useHost();
  const [pointed, setPointed] = React.useState<ISample>();
  const drawn = React.useMemo(() => chart(usage), [usage]);
  const { samples } = usage;
  const now = samples[samples.length - 1];
  if (drawn === null || now === undefined) {
    return null;
  }
  const said = trans.__('Now %1 of %2, on average %3 %', now.used, now.total, meanUse(samples));
  const point = (event: React.PointerEvent<SVGSVGElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setPointed(nearest(samples, (event.clientX - left) / width));
  };
  return (
    <figure className="pai-UsageChart">
      <figcaption>{trans.__('GPUs in use, last 24 hours')}</figcaption>
      <div className="pai-UsageChart-drawing">
        <span className="pai-UsageChart-most" aria-hidden="true">
          {drawn.most}
        </span>
        <svg
          role="img"
          aria-label={trans.__('GPUs in use, last 24 hours: %1', said)}
          viewBox="0 0 1 1"
          preserveAspectRatio="none"
          onPointerMove={point}
          onPointerLeave={() => setPointed(undefined)}
        >
          {drawn.areas.map(area => (
            <path key={area} className="pai-UsageChart-used" d={area} />
          ))}
          {drawn.totals.map(line => (
            <path key={line} className="pai-UsageChart-total" d={line} />
          ))}
          <path className="pai-UsageChart-now" d={drawn.point} />
        </svg>
      </div>
      <p className="pai-UsageChart-times" aria-hidden="true">
        <span>{trans.__('24 hours ago')}</span>
        <span>{trans.__('now')}</span>
      </p>
      <p>
        {pointed
          ? trans.__(
              '%1: %2 of %3 GPUs',
              localText(new Date(pointed.time), language, 'minutes'),
              pointed.used,
              pointed.total
            )
          : said}
      </p>
    </figure>
  );
}
