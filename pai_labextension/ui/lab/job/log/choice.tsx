// Which log is shown: whose, of several tasks together or of one, of which attempt, and which of its streams.

import * as React from 'react';

import { IAttemptTask, Stream } from '../../../console/data/client';
import { ITranslation } from '../../../console/host';
import { TextButton } from '../../../console/kit/button';
import { ITaskRow, tasksOf } from '../facts';
import { IKnownJob } from '../model';
import { keyOf, partsOf } from './groups';
import { LogModel } from './model';

interface IChoiceProps {
  model: LogModel;
  known: IKnownJob;
  trans: ITranslation;
  /** The person has chosen a log. */
  onChosen: () => void;
}

/** In the list of tasks: all of them, or of a role. */
const TOGETHER = '*';

/** Tasks beyond which all but the one that is shown are listed a little later. */
const MANY = 50;

export function Choice({ model, known, trans, onChosen }: IChoiceProps): React.ReactElement {
  const { attempts, detail } = known;
  const { tasks: chosen, stream, together } = model.choice;
  const number = chosen[0]!.attempt;
  // each attempt has the same tasks
  const rows = React.useMemo(() => tasksOf(detail.taskRoles, number), [detail.taskRoles, number]);
  const roles = [...new Set(rows.map(({ role }) => role))];
  const choose = (tasks: readonly IAttemptTask[], other: Stream, group: string | undefined) => {
    onChosen();
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
      <label>
        {trans.__('Stream')}{' '}
        <select
          className="pai-Input"
          value={stream}
          onChange={event => choose(chosen, event.target.value as Stream, together)}
        >
          <option value="all">{trans.__('all output')}</option>
          <option value="stdout">stdout</option>
          <option value="stderr">stderr</option>
        </select>
      </label>
    </>
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
