// A small line chart, as SVG with its facts in words.

import * as React from 'react';

import { ITranslation } from '../../console/host';
import { localText } from '../../console/kit/time';
import { digits, Point, scaleTop, thinned } from './series';

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
