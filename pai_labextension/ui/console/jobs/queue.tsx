// The queues of the virtual clusters: who waits in which order; one's own jobs can be moved and given another priority.

import * as React from 'react';

import { Client, IQueueEntry, IUser } from '../data/client';
import { Changeable, clusterChanges, useModel } from '../data/store';
import { startsIn } from '../data/words';
import { useHost } from '../host';
import { IconButton } from '../kit/button';
import { PageError } from '../kit/status';

/** What a person may do with a waiting job. Places count from 1; `undefined`: there is no such move. */
interface IMoves {
  readonly up: number | undefined;
  readonly down: number | undefined;
}

/** By virtual cluster, first come first. */
type Queues = Readonly<Record<string, readonly IQueueEntry[]>>;

/** What the view of the queues shows. */
export class QueueModel extends Changeable<Queues> {
  constructor(private readonly api: Client) {
    super(
      async () => {
        this.user ??= await api.whoami();
        return api.queue();
      },
      undefined,
      () => clusterChanges(api)
    );
  }

  /** Return whether the person may move a job and change its priority. */
  mayChange(entry: IQueueEntry): boolean {
    return entry.name !== null && this.user !== undefined && (this.user.admin || entry.user === this.user.username);
  }

  /** Find where a job can be moved by one. */
  moves(virtualCluster: string, entry: IQueueEntry): IMoves {
    if (!this.mayChange(entry)) {
      return { up: undefined, down: undefined };
    }
    // a place counts among the jobs of one priority that this person may move
    const among = (this.answer?.[virtualCluster] ?? []).filter(
      other => other.priority === entry.priority && this.mayChange(other)
    );
    const place = among.indexOf(entry) + 1;
    return { up: place > 1 ? place - 1 : undefined, down: place < among.length ? place + 1 : undefined };
  }

  /** Change a job's place or priority and ask again; return whether that was done. */
  async change(entry: IQueueEntry, to: { place: number } | { priority: number }): Promise<boolean> {
    const { name, user } = entry;
    if (name === null) {
      return false;
    }
    const done = await this.attempt(async () => {
      await this.api.reorder({ username: user, name }, to);
      return true;
    });
    return done ?? false;
  }

  private user: IUser | undefined;
}

interface IQueueProps {
  queue: QueueModel;
}

type Direction = 'up' | 'down';

/** Shows all queues, as the model knows them. */
export function QueuePage({ queue }: IQueueProps): React.ReactElement {
  const { trans } = useHost();
  useModel(queue);
  const filled = Object.entries(queue.answer ?? {}).filter(([, entries]) => entries.length > 0);
  return (
    <>
      <PageError text={queue.error} />
      {queue.answer === null ? (
        !queue.error && <p role="status">{trans.__('Asking for the queue …')}</p>
      ) : filled.length === 0 ? (
        <p role="status">{trans.__('No job waits for resources.')}</p>
      ) : (
        <div className="pai-Scrolled" tabIndex={0} role="region" aria-label={trans.__('Queue')}>
          {filled.map(([name, entries]) => (
            <QueueTable key={name} queue={queue} virtualCluster={name} entries={entries} />
          ))}
        </div>
      )}
    </>
  );
}

function QueueTable(
  props: IQueueProps & { virtualCluster: string; entries: readonly IQueueEntry[] }
): React.ReactElement {
  const { trans } = useHost();
  const { virtualCluster, entries } = props;
  const titles = [
    ...[trans.__('Place'), trans.__('Name'), trans.__('Actions')],
    ...[trans.__('User, GPUs, priority'), trans.__('Why it waits')]
  ];
  return (
    <table className="pai-Queue">
      <caption>{trans.__('Virtual cluster %1', virtualCluster)}</caption>
      <thead className="pai-mod-unseen">
        <tr>
          {titles.map(title => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
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
  virtualCluster,
  entry
}: IQueueProps & { virtualCluster: string; entry: IQueueEntry }): React.ReactElement {
  const { trans } = useHost();
  const name = entry.name;
  const kept = entry.reserved ? trans.__('What becomes free is kept for it.') : '';
  return (
    <tr>
      <td className="pai-Queue-place">{entry.place}</td>
      <th scope="row">{name ?? <span className="pai-mod-secondary">{trans.__('another user’s job')}</span>}</th>
      <td className="pai-Queue-actions">
        {name !== null && <MoveButtons {...{ queue, virtualCluster, entry, name }} />}
      </td>
      <td className="pai-Queue-facts">
        <span>{entry.user}</span>
        {entry.totalGpuNumber > 0 && <span>{trans._n('%1 GPU', '%1 GPUs', entry.totalGpuNumber)}</span>}
        {name !== null && queue.mayChange(entry) ? (
          <PriorityInput queue={queue} entry={entry} name={name} />
        ) : (
          <span>{trans.__('priority %1', entry.priority)}</span>
        )}
      </td>
      <td className="pai-Queue-reason">
        {[entry.waitingReason, kept, startsIn(entry.startsWithin, trans)].filter(Boolean).join(' ')}
      </td>
    </tr>
  );
}

function PriorityInput({ queue, entry, name }: IQueueProps & { entry: IQueueEntry; name: string }): React.ReactElement {
  const { trans } = useHost();
  const [typed, setTyped] = React.useState<string | null>(null);
  const finish = async () => {
    setTyped(null); // from now on what the scheduler says; and it is told once, by Enter or by leaving
    if (typed !== null && typed !== '' && Number(typed) !== entry.priority) {
      await queue.change(entry, { priority: Number(typed) });
    }
  };
  return (
    <label>
      <span aria-hidden="true">{trans.__('Priority')}</span>
      <input
        type="number"
        min={0}
        max={100}
        className="pai-Input pai-Queue-priority"
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
    </label>
  );
}

function MoveButtons({
  queue,
  virtualCluster,
  entry,
  name
}: IQueueProps & { virtualCluster: string; entry: IQueueEntry; name: string }): React.ReactElement | null {
  const { trans } = useHost();
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
        icon="up"
        label={trans.__('Move “%1” up', name)}
        disabled={moves.up === undefined}
        onClick={() => void move('up')}
      />
      <IconButton
        icon="down"
        label={trans.__('Move “%1” down', name)}
        disabled={moves.down === undefined}
        onClick={() => void move('down')}
      />
    </span>
  );
}
