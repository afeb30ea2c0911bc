// The chart of the last day: how many GPUs were taken, of how many.

import * as React from 'react';

import { ITranslation } from '../../console/host';
import { localText } from '../../console/kit/time';
import { chart, ISample, IUsage, meanUse, nearest } from './usage';

interface IUsageChartProps {
  /** Up to the present, which is its last sample. */
  usage: IUsage;
  trans: ITranslation;
  language: string;
}

/** Shows nothing where nothing is known, or there are no GPUs. */
export function UsageChart({ usage, trans, language }: IUsageChartProps): React.ReactElement | null {
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
