// Series of measurements, and charts of them.

import * as React from 'react';

import { ITranslation } from '../host';
import { localText } from './time';

/** A time (ms since the epoch) and a value. */
export type Point = readonly [time: number, value: number];

/** Series of one task by their names, as the scheduler gives them. */
export type Series = Readonly<Record<string, readonly Point[]>>;

/** How tasks are put together: GPUs in per cent are a mean, all else is a sum. */
export type Together = 'sum' | 'mean';

/** A line has at most so many corners; more than one per two pixels cannot be seen. */
export const MOST_CORNERS = 140;

/** Make MB per second of a count of bytes. */
export function perSecond(points: readonly Point[]): Point[] {
  return points.slice(1).map(([time, value], index) => {
    const [earlier, before] = points[index]!;
    return [time, Math.max(0, (value - before) / 1e6 / Math.max(0.001, (time - earlier) / 1000))];
  });
}

/** Leave at most `MOST_CORNERS` points: the mean of those that are close together, and the newest one. */
export function thinned(points: readonly Point[]): readonly Point[] {
  if (points.length <= MOST_CORNERS) {
    return points;
  }
  const begin = points[0]![0];
  const span = points.at(-1)![0] - begin + 1;
  const groups = new Map<number, Point[]>();
  for (const point of points) {
    const group = Math.floor(((point[0] - begin) * (MOST_CORNERS - 1)) / span);
    groups.set(group, [...(groups.get(group) ?? []), point]);
  }
  const means = [...groups.values()].map((near): Point => {
    const sum = near.reduce((total, [, value]) => total + value, 0);
    return [near.at(-1)![0], sum / near.length];
  });
  return [...means.slice(0, -1), points.at(-1)!];
}

/**
 * Put the same series of several tasks together. Tasks are measured at times of their own: between two of its
 * measurements a task counts with the earlier one, and before its first and after its last one not at all.
 */
export function together(tasks: readonly (readonly Point[])[], how: Together): Point[] {
  const measured = tasks.filter(points => points.length > 0);
  if (measured.length <= 1) {
    return [...(measured[0] ?? [])];
  }
  const begin = Math.min(...measured.map(points => points[0]![0]));
  const end = Math.max(...measured.map(points => points.at(-1)![0]));
  const longest = Math.max(...measured.map(points => points.length));
  const steps = Math.max(1, Math.min(MOST_CORNERS, longest) - 1);
  const step = Math.max(1, (end - begin) / steps);
  const result: Point[] = [];
  const places = measured.map(() => 0);
  for (let number = 0; number <= steps; number += 1) {
    const time = Math.round(begin + number * step);
    let [sum, count] = [0, 0];
    measured.forEach((points, task) => {
      while (places[task]! + 1 < points.length && points[places[task]! + 1]![0] <= time) {
        places[task]! += 1;
      }
      // one that was measured a moment after the beginning, or before the end, is there then, too
      if (points[0]![0] - step <= time && points.at(-1)![0] + step >= time) {
        sum += points[places[task]!]![1];
        count += 1;
      }
    });
    if (count > 0) {
      result.push([time, how === 'mean' ? sum / count : sum]);
    }
  }
  return result;
}

/** Return the round number at which a scale that holds `highest` ends; `whole`: where it ends if values stay below. */
export function scaleTop(highest: number, whole = 0): number {
  if (highest <= whole || highest <= 0) {
    return whole || 1;
  }
  const power = 10 ** Math.floor(Math.log10(highest));
  return [1, 2, 4, 5, 10].map(step => step * power).find(top => top >= highest * (1 - 1e-9))!;
}

/** Write a value with as many digits as say something. */
export function digits(value: number, language: string): string {
  const most = value >= 100 ? 0 : value >= 1 ? 1 : 2;
  return value.toLocaleString(language, { maximumFractionDigits: most });
}

// A small line chart, as SVG with its facts in words.

/** One series of a chart; `name` where the chart has several. */
export interface IChartLine {
  readonly name: string;
  readonly points: readonly Point[];
}

/** Series of one unit over one time. `whole`: the scale ends there, if the values stay below. */
export interface IChart {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly IChartLine[];
  readonly whole: number;
}

/** Of the drawing, in pixels of its own; the browser scales it to the room there is. */
const [WIDTH, HEIGHT] = [320, 120];
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 10, 8, 20];

/** Draws a chart: its title with the last and the highest value, axes with numbers, a line per series. */
export function Chart(props: {
  chart: IChart;
  language: string;
  trans: ITranslation;
  /** Nothing is measured any more: the last value is none of now. */
  hasEnded?: boolean;
}): React.ReactElement {
  const { chart, language, trans, hasEnded = false } = props;
  const all = chart.lines.flatMap(({ points }) => points);
  const times = all.map(([time]) => time);
  const [begin, end] = [Math.min(...times), Math.max(...times)];
  const top = scaleTop(Math.max(...all.map(([, value]) => value)), chart.whole);
  const x = (time: number) => LEFT + ((WIDTH - LEFT - RIGHT) * (time - begin)) / Math.max(1, end - begin);
  const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(Math.max(value, 0), top) / top);
  const facts = chart.lines.map(line => factsOf(chart, line, hasEnded, language, trans));
  const clock = (time: number) => localText(new Date(time), language, 'clock');
  return (
    <figure className="pai-Chart">
      <figcaption>
        <b>{chart.title}</b>
        {facts.map((fact, index) => (
          <span key={index} data-line={index}>
            {fact}
          </span>
        ))}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={trans.__('%1: %2', chart.title, facts.join(', '))}>
        {[0, top / 2, top].map(value => (
          <React.Fragment key={value}>
            <line className="pai-Chart-grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 4} y={y(value) + 3} textAnchor="end">
              {digits(value, language)}
            </text>
          </React.Fragment>
        ))}
        <text x={LEFT} y={HEIGHT - 5}>
          {clock(begin)}
        </text>
        {end > begin && (
          <text x={WIDTH - RIGHT} y={HEIGHT - 5} textAnchor="end">
            {clock(end)}
          </text>
        )}
        {chart.lines.map(({ points }, index) =>
          points.length === 1 ? (
            <circle key={index} data-line={index} cx={x(points[0]![0])} cy={y(points[0]![1])} r={2} />
          ) : (
            <polyline
              key={index}
              data-line={index}
              points={thinned(points)
                .map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`)
                .join(' ')}
            />
          )
        )}
      </svg>
    </figure>
  );
}

function factsOf(chart: IChart, line: IChartLine, hasEnded: boolean, language: string, trans: ITranslation): string {
  const last = digits(line.points.at(-1)![1], language);
  const highest = digits(Math.max(...line.points.map(([, value]) => value)), language);
  const said = hasEnded
    ? trans.__('%1 %2 at most', highest, chart.unit)
    : trans.__('%1 %3 now, %2 %3 at most', last, highest, chart.unit);
  return line.name ? trans.__('%1 %2', line.name, said) : said;
}
