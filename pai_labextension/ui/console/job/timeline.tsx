// What has happened to a job, and what its tasks use or used.

import * as React from 'react';

import { Client, IAttemptTask, IJobName } from '../data/client';
import { ApiError } from '../data/errors';
import { IKnownJob, ISpan, JobModel, spansOf, tasksOf } from '../data/job';
import { fewAtOnce, jobEvents, usePolled } from '../data/store';
import { ITranslation, useHost } from '../host';
import { Chart, IChart, IChartLine, perSecond, Point, Series, together, Together } from '../kit/chart';
import { PageError } from '../kit/status';
import { durationWords, LocalTime, useNow } from '../kit/time';

/** ms between two questions, and events that are listed, the newest ones. */
const EVENTS_INTERVAL = 4_000;
const EVENTS_PAUSE = 1_000;
const EVENTS = 500;

interface IViewProps {
  model: JobModel;
  known: IKnownJob;
}

/** A bar of what a job did for how long, and every event with its cause, the newest first. */
export function TimelineView({ model, known }: IViewProps): React.ReactElement {
  const { trans, language } = useHost();
  const { answer, error } = usePolled(
    'events',
    () => model.client.events(model.name),
    EVENTS_INTERVAL,
    () => jobEvents(model.client, model.name.username, EVENTS_PAUSE, model.name.name)
  );
  const events = (answer ?? []).slice(-EVENTS).reverse();
  const older = (answer ?? []).length - events.length;
  return (
    <div className="pai-Job-scroll" tabIndex={0} role="region" aria-label={trans.__('Timeline')}>
      <Bar known={known} />
      <PageError text={error} />
      <ol className="pai-Events" aria-label={trans.__('What has happened')}>
        {events.map(event => (
          <li key={event.id}>
            <LocalTime time={new Date(event.time)} language={language} form="seconds" />
            <b>
              {event.taskRole === null ? '' : `${event.taskRole}-${event.taskIndex}`}
              {event.attempt !== null && known.attempts.length > 1 && (
                <> {trans.__('(attempt %1)', event.attempt + 1)}</>
              )}
            </b>
            <span>{event.message || event.type}</span>
          </li>
        ))}
      </ol>
      {older > 0 && <p>{trans._n('… and %1 earlier event', '… and %1 earlier events', older)}</p>}
    </div>
  );
}

function Bar({ known }: { known: IKnownJob }): React.ReactElement | null {
  const { trans } = useHost();
  const spans = spansOf(known.detail.jobStatus, known.attempts, Math.max(known.time, useNow()));
  const [first, last] = [spans[0], spans.at(-1)];
  if (!first || !last) {
    return null;
  }
  const words: Record<ISpan['kind'], string> = {
    WAITING: trans.__('Waiting'),
    STARTING: trans.__('Starting'),
    RUNNING: trans.__('Running')
  };
  const told = (kind: ISpan['kind']) => {
    const all = spans.filter(span => span.kind === kind).reduce((sum, { begin, end }) => sum + end - begin, 0);
    return trans.__('%1 for %2', words[kind], durationWords(all, trans));
  };
  const kinds = [...new Set(spans.map(({ kind }) => kind))];
  return (
    <figure className="pai-Spans">
      <div className="pai-Spans-bar" role="img" aria-label={kinds.map(told).join(', ')}>
        {spans.map(({ kind, begin, end }) => (
          <span
            key={begin}
            data-kind={kind}
            style={{ flexGrow: end - begin }}
            title={`${words[kind]}: ${durationWords(end - begin, trans)}`}
          />
        ))}
      </div>
      <figcaption>
        {kinds.map(kind => (
          <span key={kind} data-kind={kind}>
            {told(kind)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** ms between two questions. */
const USAGE_INTERVAL = 5_000;
/** Tasks that are measured together: each is asked about by itself. */
const MOST_MEASURED = 32;
/** After so many points of a series all are asked for anew: the scheduler has merged the old ones by then. */
const MOST_POINTS = 1500;
/** Tasks that are asked about at the same time. */
const AT_ONCE = 3;

/** What the tasks of a job use or used: charts of one task, or of all of them together. */
export function UsageView({ model, known }: IViewProps): React.ReactElement {
  const { trans } = useHost();
  const last = known.attempts.at(-1);
  const rows = last ? tasksOf(known.detail.taskRoles, last.attempt) : [];
  const [chosen, setChosen] = React.useState('');
  const measured = chosen === '' ? rows.slice(0, MOST_MEASURED) : rows.filter(({ key }) => key === chosen);
  return (
    <div className="pai-Job-scroll" tabIndex={0} role="region" aria-label={trans.__('Usage')}>
      {rows.length > 1 && (
        <label>
          {trans.__('Task')}{' '}
          <select className="pai-Input" value={chosen} onChange={event => setChosen(event.target.value)}>
            <option value="">{trans.__('All tasks together')}</option>
            {rows.map(({ key }) => (
              <option key={key} value={key}>
                {key}
              </option>
            ))}
          </select>
        </label>
      )}
      {chosen === '' && rows.length > MOST_MEASURED && (
        <p role="note">{trans.__('The first %1 tasks of %2 are shown.', MOST_MEASURED, rows.length)}</p>
      )}
      {measured.length === 0 ? (
        <p role="status">{trans.__('No task has started yet.')}</p>
      ) : (
        <Charts
          key={`${last?.attempt} ${chosen}`}
          model={model}
          tasks={measured}
          hasEnded={measured.every(({ status }) => status.taskState !== 'WAITING' && status.taskState !== 'RUNNING')}
        />
      )}
    </div>
  );
}

function Charts(props: { model: JobModel; tasks: readonly IAttemptTask[]; hasEnded: boolean }): React.ReactElement {
  const { model, tasks, hasEnded } = props;
  const { trans, language } = useHost();
  // (made anew with the component, which has the tasks in its key)
  const [usage] = React.useState(() => new UsageModel(model.client, model.name, tasks));
  const { answer, error } = usePolled('usage', () => usage.ask(), USAGE_INTERVAL);
  const charts = answer ? chartsOf(answer, trans) : [];
  return (
    <>
      <PageError text={error} />
      {charts.length === 0 && !error && (
        <p role="status">
          {answer ? trans.__('Nothing has been measured yet.') : trans.__('Asking for what is used …')}
        </p>
      )}
      <div className="pai-Charts">
        {charts.map(chart => (
          <Chart key={chart.title} {...{ chart, language, trans, hasEnded }} />
        ))}
      </div>
    </>
  );
}

/** What is known of one task. */
interface IUsage {
  series: Record<string, Point[]>;
  gpuMemoryMB: number | null;
}

/** Collects what tasks use: of one, or of the first ones of a gang. */
class UsageModel {
  constructor(
    private readonly client: Client,
    private readonly job: IJobName,
    private readonly tasks: readonly IAttemptTask[]
  ) {
    this.usage = tasks.map(() => ({ series: {}, gpuMemoryMB: null }));
  }

  /** Ask what is new; tasks that have not started have used nothing. */
  async ask(): Promise<readonly IUsage[]> {
    await fewAtOnce(this.tasks.entries(), AT_ONCE, ([index, task]) => this.askOne(task, index));
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
