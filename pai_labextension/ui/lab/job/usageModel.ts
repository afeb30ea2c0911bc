// Collects what tasks use: of one, or of the first ones of a gang.

import { Client, IAttemptTask, IJobName } from '../../console/data/client';
import { ApiError } from '../../console/data/errors';
import { ITranslation } from '../../console/host';
import { IChart, IChartLine, perSecond, Point, Series, together, Together } from '../../console/kit/chart';

/** Tasks that are measured together: each is asked about by itself. */
export const MOST_MEASURED = 32;
/** After so many points of a series all are asked for anew: the scheduler has merged the old ones by then. */
const MOST_POINTS = 1500;
/** Tasks that are asked about at the same time. */
const AT_ONCE = 3;

/** What is known of one task. */
interface IUsage {
  series: Record<string, Point[]>;
  gpuMemoryMB: number | null;
}

export class UsageModel {
  constructor(
    private readonly client: Client,
    private readonly job: IJobName,
    private readonly tasks: readonly IAttemptTask[]
  ) {
    this.usage = tasks.map(() => ({ series: {}, gpuMemoryMB: null }));
  }

  /** Ask what is new; tasks that have not started have used nothing. */
  async ask(): Promise<readonly IUsage[]> {
    for (let first = 0; first < this.tasks.length; first += AT_ONCE) {
      const some = this.tasks.slice(first, first + AT_ONCE);
      await Promise.all(some.map((task, index) => this.askOne(task, first + index)));
    }
    return [...this.usage];
  }

  private async askOne(task: IAttemptTask, index: number): Promise<void> {
    let before = this.usage[index]!;
    if (Object.values(before.series).some(points => points.length > MOST_POINTS)) {
      before = { series: {}, gpuMemoryMB: null };
    }
    const newest = Math.max(0, ...Object.values(before.series).map(points => points.at(-1)?.[0] ?? 0));
    try {
      const answer = await this.client.metrics(this.job, task, newest);
      const series = { ...before.series };
      for (const [name, points] of Object.entries(answer.series)) {
        series[name] = [...(series[name] ?? []), ...points.map(([time, value]): Point => [time!, value!])];
      }
      this.usage[index] = { series, gpuMemoryMB: answer.gpuMemoryTotalMB };
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) {
        throw error;
      }
    }
  }

  private readonly usage: IUsage[];
}

/** Choose the charts: those for which something was measured. */
export function chartsOf(
  usage: readonly { readonly series: Series; readonly gpuMemoryMB: number | null }[],
  trans: ITranslation
): IChart[] {
  const known = (name: string, how: Together = 'sum', change = (points: readonly Point[]) => [...points]) =>
    together(
      usage.map(({ series }) => change(series[name] ?? [])),
      how
    );
  const one = (points: Point[]): IChartLine[] => [{ name: '', points }];
  const gpuMemory = usage.reduce((sum, { gpuMemoryMB }) => sum + (gpuMemoryMB ?? 0), 0);
  const network = [
    { name: trans.__('received'), points: known('netRxBytes', 'sum', perSecond) },
    { name: trans.__('sent'), points: known('netTxBytes', 'sum', perSecond) }
  ];
  const charts: IChart[] = [
    { title: trans.__('CPU (100 % is one core)'), unit: '%', lines: one(known('cpuPercent')), whole: 100 },
    { title: trans.__('Memory'), unit: 'MB', lines: one(known('memoryMB')), whole: 0 },
    { title: trans.__('GPU'), unit: '%', lines: one(known('gpuPercent', 'mean')), whole: 100 },
    { title: trans.__('GPU memory'), unit: 'MB', lines: one(known('gpuMemoryMB')), whole: gpuMemory },
    { title: trans.__('Disk'), unit: 'MB', lines: one(known('diskMB')), whole: 0 },
    { title: trans.__('Network'), unit: 'MB/s', lines: network, whole: 0 }
  ];
  return charts
    .map(chart => ({ ...chart, lines: chart.lines.filter(({ points }) => points.length > 0) }))
    .filter(({ lines }) => lines.length > 0);
}
