// The queues: who waits in which order; one's own jobs can be moved and given another priority.

import { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretUpIcon, InputGroup } from '@jupyterlab/ui-components';
import * as React from 'react';

import { IQueueEntry } from './api';
import { IconButton } from './buttons';
import { startsIn } from './forecast';
import { ColumnTitles, PageError } from './page';
import { QueueModel } from './queue';

interface IQueueProps {
  queue: QueueModel;
  trans: TranslationBundle;
}

type Direction = 'up' | 'down';

/** Shows all queues, as the model knows them. */
export function QueueView({ queue, trans }: IQueueProps): React.ReactElement {
  const filled = Object.entries(queue.answer ?? {}).filter(([, entries]) => entries.length > 0);
  return (
    <>
      <PageError text={queue.error} />
      {queue.answer === null ? (
        !queue.error && <p role="status">{trans.__('Asking for the queue …')}</p>
      ) : filled.length === 0 ? (
        <p role="status">{trans.__('No job waits for resources.')}</p>
      ) : (
        <div className="pai-Table-scroll" tabIndex={0} role="region" aria-label={trans.__('Queue')}>
          {filled.map(([name, entries]) => (
            <QueueTable key={name} queue={queue} trans={trans} virtualCluster={name} entries={entries} />
          ))}
        </div>
      )}
    </>
  );
}

function QueueTable(
  props: IQueueProps & { virtualCluster: string; entries: readonly IQueueEntry[] }
): React.ReactElement {
  const { virtualCluster, entries, trans } = props;
  return (
    <table className="pai-Table pai-Queue-table">
      <caption>{trans.__('Virtual cluster %1', virtualCluster)}</caption>
      <ColumnTitles
        columns={[
          [trans.__('Place'), 'number'],
          [trans.__('Name')],
          [trans.__('User')],
          [trans.__('Priority')],
          [trans.__('GPUs'), 'number'],
          [trans.__('Why it waits'), 'reason'],
          [trans.__('Actions'), 'buttons']
        ]}
      />
      <tbody>
        {entries.map(entry => (
          <QueueRow key={entry.name === null ? entry.place : `${entry.user}~${entry.name}`} {...props} entry={entry} />
        ))}
      </tbody>
    </table>
  );
}

function QueueRow({
  queue,
  trans,
  virtualCluster,
  entry
}: IQueueProps & { virtualCluster: string; entry: IQueueEntry }): React.ReactElement {
  const name = entry.name;
  const kept = entry.reserved ? trans.__('What becomes free is kept for it.') : '';
  return (
    <tr>
      <td className="pai-mod-number">{entry.place}</td>
      <th scope="row">{name ?? <span className="pai-mod-secondary">{trans.__('another user’s job')}</span>}</th>
      <td>{entry.user}</td>
      <td>
        {name !== null && queue.mayChange(entry) ? (
          <PriorityInput queue={queue} trans={trans} entry={entry} name={name} />
        ) : (
          entry.priority
        )}
      </td>
      <td className="pai-mod-number">{entry.totalGpuNumber}</td>
      <td className="pai-Table-reason">
        {[entry.waitingReason, kept, startsIn(entry.startsWithin, trans)].filter(Boolean).join(' ')}
      </td>
      <td>{name !== null && <MoveButtons {...{ queue, trans, virtualCluster, entry, name }} />}</td>
    </tr>
  );
}

function PriorityInput({
  queue,
  trans,
  entry,
  name
}: IQueueProps & { entry: IQueueEntry; name: string }): React.ReactElement {
  const [typed, setTyped] = React.useState<string | null>(null);
  const finish = async () => {
    setTyped(null); // from now on what the scheduler says; and it is told once, by Enter or by leaving
    if (typed !== null && typed !== '' && Number(typed) !== entry.priority) {
      await queue.change(entry, { priority: Number(typed) });
    }
  };
  return (
    <InputGroup
      type="number"
      min={0}
      max={100}
      className="pai-Queue-priority"
      aria-label={trans.__('Priority of “%1”', name)}
      title={trans.__('0 to 100, higher comes first')}
      value={typed ?? entry.priority}
      onChange={event => setTyped(event.currentTarget.value)}
      onKeyDown={event => {
        if (event.key === 'Enter') {
          void finish();
        } else if (event.key === 'Escape') {
          setTyped(null);
        }
      }}
      onBlur={() => void finish()}
    />
  );
}

function MoveButtons({
  queue,
  trans,
  virtualCluster,
  entry,
  name
}: IQueueProps & { virtualCluster: string; entry: IQueueEntry; name: string }): React.ReactElement | null {
  const buttons = React.useRef<HTMLSpanElement>(null);
  const [moved, setMoved] = React.useState<{ direction: Direction } | null>(null);
  React.useEffect(() => {
    if (moved) {
      // the row has gone elsewhere, or can go no further: the keyboard's focus goes with it
      const [up, down] = buttons.current?.querySelectorAll('button') ?? [];
      const [pressed, other] = moved.direction === 'up' ? [up, down] : [down, up];
      (pressed?.disabled ? other : pressed)?.focus();
    }
  }, [moved]);
  const moves = queue.moves(virtualCluster, entry);
  if (!queue.mayChange(entry)) {
    return null;
  }
  const move = async (direction: Direction) => {
    const place = moves[direction];
    if (place !== undefined && (await queue.change(entry, { place }))) {
      setMoved({ direction });
    }
  };
  return (
    <span ref={buttons} className="pai-Queue-moves">
      <IconButton
        icon={caretUpIcon}
        label={trans.__('Move “%1” up', name)}
        disabled={moves.up === undefined}
        onClick={() => void move('up')}
      />
      <IconButton
        icon={caretDownIcon}
        label={trans.__('Move “%1” down', name)}
        disabled={moves.down === undefined}
        onClick={() => void move('down')}
      />
    </span>
  );
}
