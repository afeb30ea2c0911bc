// The tasks of a job, thousands of them too: only the rows in view are drawn. Above them its attempts.

import * as React from 'react';

import { IAttemptTask } from '../data/client';
import { messageOf } from '../data/errors';
import { exitWords, gpuCount, IKnownJob, ITaskRow, JobModel, tasksOf } from '../data/job';
import { shapeOf, stateLabel } from '../data/words';
import { AttemptInfo } from '../generated/types.gen';
import { ITranslation, useHost } from '../host';
import { TextButton } from '../kit/button';
import { PageError, State } from '../kit/status';
import { durationWords, LocalTime } from '../kit/time';

interface ITasksProps {
  model: JobModel;
  known: IKnownJob;
  /** Show the log of a task. */
  onLog: (task: IAttemptTask) => void;
}

/** Pixels of a row, as the style has it, and rows beyond the edges that are drawn as well. */
const ROW = 32;
const SPARE = 10;
/** Beyond so many there is a field to look for some. */
const MANY = 10;
/** Attempts that are listed, the newest ones. */
const ATTEMPTS = 100;

export function TasksView(props: ITasksProps): React.ReactElement {
  const { trans } = useHost();
  const { known } = props;
  const [chosen, setChosen] = React.useState<number | null>(null);
  const [words, setWords] = React.useState('');
  const last = known.attempts.at(-1);
  const attempt = known.attempts.find(one => one.attempt === chosen) ?? last;
  const isLast = attempt === last;
  const earlier = useTasksOf(props.model, attempt, isLast);
  const taskRoles = isLast ? known.detail.taskRoles : earlier.taskRoles;
  const rows = React.useMemo(() => tasksOf(taskRoles ?? {}, attempt?.attempt ?? 0), [taskRoles, attempt?.attempt]);
  const found = React.useMemo(() => select(rows, words, trans), [rows, words, trans]);
  return (
    <>
      {known.attempts.length > 1 && <Attempts {...props} shown={attempt?.attempt ?? 0} onShow={setChosen} />}
      <PageError text={earlier.error} />
      <p role="status" className="pai-Tasks-sum">
        {taskRoles || earlier.error ? summary(rows, trans) : trans.__('Asking for the tasks …')}
      </p>
      {rows.length > MANY && (
        <input
          type="search"
          className="pai-Input pai-Machines-search"
          aria-label={trans.__('Find tasks')}
          placeholder={trans.__('Task, state or machine')}
          value={words}
          onChange={event => setWords(event.currentTarget.value)}
        />
      )}
      <Table {...props} rows={found} spec={attempt?.exitSpec ?? null} hasRun={attempt !== undefined} />
    </>
  );
}

/** What is known of the tasks of an attempt before the last one. */
interface IEarlierTasks {
  readonly attempt?: AttemptInfo;
  readonly taskRoles: AttemptInfo['taskRoles'] | null;
  readonly error: string;
}

const UNKNOWN: IEarlierTasks = { taskRoles: null, error: '' };

/** Ask for the tasks of an attempt before the last one: the job itself has only those of the last. */
function useTasksOf(model: JobModel, attempt: AttemptInfo | undefined, isLast: boolean): IEarlierTasks {
  const [found, setFound] = React.useState(UNKNOWN);
  React.useEffect(() => {
    if (isLast || !attempt) {
      return undefined;
    }
    let wanted = true;
    model.client.tasksOf(model.name, attempt.attempt).then(
      taskRoles => wanted && setFound({ attempt, taskRoles, error: '' }),
      (error: unknown) => wanted && setFound({ attempt, taskRoles: null, error: messageOf(error) })
    );
    return () => {
      wanted = false;
    };
  }, [model, attempt, isLast]);
  // what was found of the same one is right until there is something newer
  return !isLast && found.attempt?.attempt === attempt?.attempt ? found : UNKNOWN;
}

function select(rows: readonly ITaskRow[], words: string, trans: ITranslation): readonly ITaskRow[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) {
    return rows;
  }
  return rows.filter(({ key, status }) => {
    const text = `${key} ${status.node} ${status.taskState} ${taskState(status.taskState, trans)}`.toLowerCase();
    return wanted.every(word => text.includes(word));
  });
}

function taskState(state: ITaskRow['status']['taskState'], trans: ITranslation): string {
  return stateLabel({ state, subState: '' }, trans);
}

/** Say how many tasks of each role are in which state. */
function summary(rows: readonly ITaskRow[], trans: ITranslation): string {
  const roles = new Map<string, Map<string, number>>();
  for (const { role, status } of rows) {
    const counts = roles.get(role) ?? new Map<string, number>();
    const state = taskState(status.taskState, trans);
    roles.set(role, counts.set(state, (counts.get(state) ?? 0) + 1));
  }
  return [...roles]
    .map(([role, counts]) => `${role}: ${[...counts].map(([state, count]) => `${count} × ${state}`).join(', ')}`)
    .join(' · ');
}

function Table(
  props: ITasksProps & {
    rows: readonly ITaskRow[];
    spec: Parameters<typeof exitWords>[1];
    hasRun: boolean;
  }
): React.ReactElement {
  const { trans } = useHost();
  const { rows } = props;
  const [view, setView] = React.useState({ top: 0, height: 600 });
  const box = React.useRef<HTMLDivElement>(null);
  const look = () => box.current && setView({ top: box.current.scrollTop, height: box.current.clientHeight });
  React.useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(view.top / ROW) - SPARE);
  const shown = rows.slice(first, Math.ceil((view.top + view.height) / ROW) + SPARE);
  const columns = [
    trans.__('Task'),
    trans.__('State'),
    trans.__('Machine'),
    trans.__('Address'),
    trans.__('GPUs'),
    trans.__('Exit code'),
    trans.__('Actions')
  ];
  return (
    <div
      ref={box}
      className="pai-Tasks-scroll"
      tabIndex={0}
      role="region"
      aria-label={trans.__('Tasks')}
      onScroll={look}
    >
      <div role="table" className="pai-Tasks" aria-label={trans.__('Tasks')} aria-rowcount={rows.length + 1}>
        <div role="row" aria-rowindex={1} className="pai-Tasks-row pai-Tasks-titles">
          {columns.map(title => (
            <span key={title} role="columnheader">
              {title}
            </span>
          ))}
        </div>
        <div role="rowgroup" className="pai-Tasks-body" style={{ height: rows.length * ROW }}>
          {shown.map((row, index) => (
            <Row key={row.key} {...props} row={row} number={first + index} />
          ))}
        </div>
      </div>
    </div>
  );
}

function Row(
  props: ITasksProps & {
    row: ITaskRow;
    number: number;
    spec: Parameters<typeof exitWords>[1];
    hasRun: boolean;
  }
): React.ReactElement {
  const { trans } = useHost();
  const { row, number, spec, hasRun, onLog } = props;
  const { status } = row;
  const exit = exitWords(status.containerExitCode, spec, trans);
  return (
    <div role="row" aria-rowindex={number + 2} className="pai-Tasks-row" style={{ top: number * ROW }}>
      <span role="rowheader">{row.key}</span>
      <span role="cell">
        <State shape={shapeOf({ state: status.taskState, subState: '' })}>{taskState(status.taskState, trans)}</State>
      </span>
      <span role="cell">{status.node}</span>
      <span role="cell">{status.containerIp}</span>
      <span role="cell">{gpuCount(status.containerGpus)}</span>
      <span role="cell" title={exit}>
        {exit}
      </span>
      <span role="cell">
        {hasRun && (
          <TextButton small aria-label={trans.__('Show the log of %1', row.key)} onClick={() => onLog(row)}>
            {trans.__('Log')}
          </TextButton>
        )}
      </span>
    </div>
  );
}

function Attempts(props: ITasksProps & { shown: number; onShow: (attempt: number) => void }): React.ReactElement {
  const { trans, language } = useHost();
  const { known, shown, onShow } = props;
  const newest = known.attempts.slice(-ATTEMPTS).reverse();
  return (
    <div className="pai-Attempts" tabIndex={0} role="region" aria-label={trans.__('Attempts')}>
      <table>
        <caption>{trans.__('Attempts: %1', known.attempts.length)}</caption>
        <thead>
          <tr>
            <th scope="col">{trans.__('Attempt')}</th>
            <th scope="col">{trans.__('State')}</th>
            <th scope="col">{trans.__('Began')}</th>
            <th scope="col">{trans.__('Ran for')}</th>
            <th scope="col">{trans.__('Exit code')}</th>
            <th scope="col">{trans.__('Why it ended')}</th>
          </tr>
        </thead>
        <tbody>
          {newest.map(one => (
            <tr key={one.attempt}>
              <th scope="row">
                <TextButton
                  small
                  accept={one.attempt === shown}
                  aria-pressed={one.attempt === shown}
                  aria-label={trans.__('Show the tasks of attempt %1', one.attempt + 1)}
                  onClick={() => onShow(one.attempt)}
                >
                  {one.attempt + 1}
                </TextButton>
              </th>
              <td>{taskState(one.state, trans)}</td>
              <td>
                <LocalTime time={new Date(one.createdTime)} language={language} form="seconds" />
              </td>
              <td>
                {one.launchedTime !== null && one.completedTime !== null
                  ? durationWords(one.completedTime - one.launchedTime, trans)
                  : ''}
              </td>
              <td>{exitWords(one.exitCode, one.exitSpec, trans)}</td>
              <td className="pai-Attempts-reason">{one.reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
