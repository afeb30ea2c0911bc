// Which log is shown, and ways through it: search, jump to its beginning, its end, a part of it or a time.

import * as React from 'react';

import { IAttemptTask, Stream } from '../../data/client';
import { IKnownJob, ITaskRow, tasksOf } from '../../data/job';
import { useHost } from '../../host';
import { IconButton, TextButton } from '../../kit/button';
import { LogModel } from './model';

/** Tasks whose logs are shown together: each is asked for by itself. */
const MOST_TOGETHER = 32;

/** Return the tasks of a role, in parts that can be shown together and are about as large; `role` empty: of all. */
export function partsOf(rows: readonly ITaskRow[], role: string, most = MOST_TOGETHER): ITaskRow[][] {
  const found = rows.filter(row => role === '' || row.role === role);
  const parts = Math.ceil(found.length / most);
  const begin = (part: number) => Math.round((part * found.length) / parts);
  return Array.from({ length: parts }, (_, part) => found.slice(begin(part), begin(part + 1)));
}

/** Name a task as the list of tasks does. */
export function keyOf({ role, index }: IAttemptTask): string {
  return `${role}-${index}`;
}

/** In the list of tasks: all of them, or of a role. */
const TOGETHER = '*';

/** Tasks beyond which all but the one that is shown are listed a little later. */
const MANY = 50;

/** Which log is shown: whose, of several tasks together or of one, and of which attempt. */
export function Choice({ model, known }: { model: LogModel; known: IKnownJob }): React.ReactElement {
  const { trans } = useHost();
  const { attempts, detail } = known;
  const { tasks: chosen, stream, together } = model.choice;
  const number = chosen[0]!.attempt;
  // each attempt has the same tasks
  const rows = React.useMemo(() => tasksOf(detail.taskRoles, number), [detail.taskRoles, number]);
  const roles = [...new Set(rows.map(({ role }) => role))];
  const choose = (tasks: readonly IAttemptTask[], other: Stream, group: string | undefined) => {
    model.choose({
      tasks: tasks.map(({ role, index, attempt }) => ({ role, index, attempt })),
      stream: other,
      ...(group !== undefined && { together: group })
    });
  };
  const parts = React.useMemo(() => (together === undefined ? [] : partsOf(rows, together)), [rows, together]);
  const value = together === undefined ? keyOf(chosen[0]!) : `${TOGETHER}${together}`;
  const complete = useLater(rows.length > MANY);
  const onTask = (key: string) => {
    if (key.startsWith(TOGETHER)) {
      const role = key.slice(TOGETHER.length);
      choose(partsOf(rows, role)[0] ?? [], stream, role);
    } else {
      choose(
        rows.filter(row => row.key === key),
        stream,
        undefined
      );
    }
  };
  const toAttempt = (other: number) =>
    choose(
      chosen.map(task => ({ ...task, attempt: other })),
      stream,
      together
    );
  const latest = attempts.at(-1)?.attempt ?? number;
  return (
    <>
      <label>
        {trans.__('Task')}{' '}
        <select className="pai-Input" value={value} onChange={event => onTask(event.target.value)}>
          {rows.length > 1 && <option value={TOGETHER}>{trans.__('All tasks, in order of time')}</option>}
          {roles.length > 1 &&
            roles
              .filter(role => rows.filter(row => row.role === role).length > 1)
              .map(role => (
                <option key={role} value={`${TOGETHER}${role}`}>
                  {trans.__('All of %1, in order of time', role)}
                </option>
              ))}
          {options(complete ? rows : rows.filter(({ key }) => key === value))}
        </select>
      </label>
      {attempts.length > 1 && (
        <label>
          {trans.__('Attempt')}{' '}
          <select className="pai-Input" value={number} onChange={event => toAttempt(Number(event.target.value))}>
            {attempts.map(one => (
              <option key={one.attempt} value={one.attempt}>
                {one.attempt + 1}
              </option>
            ))}
          </select>
        </label>
      )}
      {number < latest && (
        <TextButton small onClick={() => toAttempt(latest)}>
          {trans.__('Show attempt %1, the newest', latest + 1)}
        </TextButton>
      )}
      {parts.length > 1 && (
        <label>
          {trans.__('%1 of %2 tasks', chosen.length, parts.flat().length)}{' '}
          <select
            className="pai-Input"
            value={parts.findIndex(([first]) => first?.key === keyOf(chosen[0]!))}
            onChange={event => choose(parts[Number(event.target.value)]!, stream, together)}
          >
            {parts.map((part, index) => (
              <option key={index} value={index}>
                {trans.__('%1 to %2', part[0]!.key, part.at(-1)!.key)}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

/** Which of its streams is shown. */
export function StreamChoice({ model }: { model: LogModel }): React.ReactElement {
  const { trans } = useHost();
  const { choice } = model;
  return (
    <label>
      {trans.__('Stream')}{' '}
      <select
        className="pai-Input"
        value={choice.stream}
        onChange={event => model.choose({ ...choice, stream: event.target.value as Stream })}
      >
        <option value="all">{trans.__('all output')}</option>
        <option value="stdout">stdout</option>
        <option value="stderr">stderr</option>
      </select>
    </label>
  );
}

function options(rows: readonly ITaskRow[]): React.ReactElement[] {
  return rows.map(({ key }) => (
    <option key={key} value={key}>
      {key}
    </option>
  ));
}

/** Return whether it is time for what is in nobody's view yet: at once unless it is `much`, else after the first frame. */
function useLater(much: boolean): boolean {
  const [later, setLater] = React.useState(!much);
  React.useEffect(() => React.startTransition(() => setLater(true)), []);
  return later || !much;
}

/** Steps of the slider. */
const STEPS = 1000;

/** Searches the whole log, not only what is in the browser. */
export function SearchBar(props: {
  model: LogModel;
  query: string;
  onQuery: (query: string) => void;
  firstInView: () => number;
}): React.ReactElement {
  const { trans } = useHost();
  const { model, query, onQuery, firstInView } = props;
  const { search } = model;
  const isRunning = typeof search === 'object' && search !== null;
  const find = (backwards: boolean) => {
    if (query) {
      void model.find(query, backwards, firstInView());
    }
  };
  return (
    <div role="search" className="pai-Log-search">
      <input
        type="search"
        className="pai-Input"
        aria-label={trans.__('Search the whole log')}
        placeholder={trans.__('Search the whole log')}
        value={query}
        onChange={event => onQuery(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            find(event.shiftKey);
          } else if (event.key === 'Escape') {
            model.cancelSearch();
          }
        }}
      />
      <IconButton icon="previous" label={trans.__('Previous match')} disabled={!query} onClick={() => find(true)} />
      <IconButton icon="next" label={trans.__('Next match')} disabled={!query} onClick={() => find(false)} />
      <span role="status">
        {search === 'nothing' && trans.__('No more matches in this direction.')}
        {isRunning && trans.__('Searched %1 %', Math.round(search.done * 100))}
      </span>
      {isRunning && (
        <TextButton small onClick={() => model.cancelSearch()}>
          {trans.__('Cancel')}
        </TextButton>
      )}
    </div>
  );
}

/** Jumps within the log. */
export function JumpBar({ model }: { model: LogModel }): React.ReactElement {
  const { trans } = useHost();
  const [time, setTime] = React.useState('');
  const { top, size } = model.place;
  const place = model.following || size === 0 ? STEPS : Math.round((top / size) * STEPS);
  const [dragged, setDragged] = React.useState<number | null>(null);
  const jump = () => {
    const wanted = new Date(time).getTime();
    if (!isNaN(wanted)) {
      void model.toTime(wanted);
    }
  };
  const drop = () => {
    if (dragged !== null) {
      void (dragged === STEPS ? model.toEnd() : model.toPart(dragged / STEPS));
      setDragged(null);
    }
  };
  return (
    <div className="pai-Log-jump" role="group" aria-label={trans.__('Jump')}>
      <TextButton small onClick={() => void model.toStart()}>
        {trans.__('Start')}
      </TextButton>
      {model.choice.tasks.length === 1 && (
        <input
          type="range"
          min={0}
          max={STEPS}
          value={dragged ?? place}
          aria-label={trans.__('Place in the log')}
          aria-valuetext={trans.__('%1 %', Math.round((dragged ?? place) / 10))}
          onChange={event => setDragged(Number(event.target.value))}
          onPointerUp={drop}
          onKeyUp={drop}
          onBlur={drop}
        />
      )}
      <TextButton small onClick={() => void model.toEnd()}>
        {trans.__('End')}
      </TextButton>
      <input
        type="datetime-local"
        step={1}
        className="pai-Input"
        aria-label={trans.__('Time to jump to')}
        value={time}
        onChange={event => setTime(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            jump();
          }
        }}
      />
      <TextButton small disabled={!time} onClick={jump}>
        {trans.__('Go to this time')}
      </TextButton>
    </div>
  );
}
