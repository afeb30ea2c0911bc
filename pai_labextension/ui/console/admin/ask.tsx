// What administrators are asked before something is done: a text, shares, a time; each names what it hits.

import * as React from 'react';

import { IVirtualCluster } from '../data/cluster';
import { IHost, ITranslation } from '../host';
import { DialogButtons, openDialog, showError } from '../kit/dialog';
import { Field, TextField } from '../kit/field';
import { IMaintenance, IShares } from './client';

/** Characters of the longest reason or message. */
const LONGEST = 400;

interface IAsked {
  readonly title: string;
  /** What it does; its lines are a list. */
  readonly text: string;
  readonly hits?: readonly string[];
  /** What is to be written. */
  readonly label: string;
  /** Whether something must be. */
  readonly needed?: boolean;
  readonly accept: string;
  readonly warn?: boolean;
}

/** Ask for a text with which something is done; `null`: it is not meant. */
export function askText({ root, trans }: IHost, asked: IAsked): Promise<string | null> {
  const { title, text, hits = [], label, needed = false, accept, warn = false } = asked;
  function Content({ answer }: { answer: (text: string | null) => void }): React.ReactElement {
    const [written, setWritten] = React.useState('');
    return (
      <form
        className="pai-AdminForm"
        onSubmit={event => {
          event.preventDefault();
          answer(written.trim());
        }}
      >
        <p>{text}</p>
        {hits.length > 0 && (
          <ul className="pai-AdminForm-hits">
            {hits.map(hit => (
              <li key={hit}>{hit}</li>
            ))}
          </ul>
        )}
        <TextField
          label={label}
          needed={needed}
          value={written}
          onChange={given => setWritten(given.slice(0, LONGEST))}
        />
        <DialogButtons
          accept={accept}
          cancel={trans.__('Cancel')}
          warn={warn}
          focus={false}
          disabled={needed && written.trim() === ''}
          onCancel={() => answer(null)}
        />
      </form>
    );
  }
  return openDialog<string | null>(root, title, answer => <Content answer={answer} />);
}

/** The shares of a virtual cluster. */
interface INamedShares {
  readonly name: string;
  readonly shares: IShares;
}

/** Ask for the shares of a virtual cluster (`null`: of a new one), with what comes of them for all. */
export function askShares(
  { root, trans }: IHost,
  clusters: readonly IVirtualCluster[],
  one: IVirtualCluster | null
): Promise<INamedShares | null> {
  function Content({ answer }: { answer: (shares: INamedShares | null) => void }): React.ReactElement {
    const [name, setName] = React.useState(one?.name ?? '');
    const [least, setLeast] = React.useState(String(one?.capacity ?? 0));
    const [most, setMost] = React.useState(String(one?.maxCapacity ?? 100));
    const [users, setUsers] = React.useState('');
    const [groups, setGroups] = React.useState('');
    const outlook = preview(clusters, one, number(least), number(most), trans);
    const mistake = name.trim() === '' ? trans.__('Required: Name') : outlook.mistake;
    return (
      <form
        className="pai-AdminForm"
        onSubmit={event => {
          event.preventDefault();
          const shares = {
            vcCapacity: number(least),
            vcMaxCapacity: number(most),
            ...(users.trim() ? { users: listed(users) } : {}),
            ...(groups.trim() ? { groups: listed(groups) } : {})
          };
          answer({ name: name.trim(), shares });
        }}
      >
        {one === null && <TextField label={trans.__('Name')} needed value={name} onChange={setName} />}
        <TextField label={trans.__('Guaranteed quota (%)')} numeric needed value={least} onChange={setLeast} />
        <TextField label={trans.__('Maximum quota (%)')} numeric needed value={most} onChange={setMost} />
        <TextField
          label={trans.__('Users')}
          help={trans.__('Names with commas between. Leave it empty to change nothing.')}
          hint
          value={users}
          onChange={setUsers}
        />
        <TextField label={trans.__('Groups')} value={groups} onChange={setGroups} />
        <table className="pai-AdminForm-sum">
          <caption>{trans.__('Guaranteed quotas after this change')}</caption>
          <tbody>
            {outlook.rows.map(row => (
              <tr key={row.name} data-changed={row.before !== row.after || undefined}>
                <th scope="row">{row.name || trans.__('(new)')}</th>
                <td>{row.before === row.after ? per(row.after) : `${per(row.before)} → ${per(row.after)}`}</td>
                <td>{row.words}</td>
              </tr>
            ))}
            <tr>
              <th scope="row">{trans.__('Sum')}</th>
              <td>{per(outlook.rows.reduce((sum, row) => sum + row.after, 0))}</td>
              <td />
            </tr>
          </tbody>
        </table>
        {mistake && (
          <p role="alert" className="pai-Field-mistake">
            {mistake}
          </p>
        )}
        <DialogButtons
          accept={trans.__('Save')}
          cancel={trans.__('Cancel')}
          focus={false}
          disabled={mistake !== ''}
          onCancel={() => answer(null)}
        />
      </form>
    );
  }
  const title = one ? trans.__('Quota of “%1”', one.name) : trans.__('New virtual cluster');
  return openDialog<INamedShares | null>(root, title, answer => <Content answer={answer} />);
}

interface IPreview {
  readonly rows: readonly { name: string; before: number; after: number; words: string }[];
  /** Why it cannot be so; empty where it can. */
  readonly mistake: string;
}

/** Return what guaranteed quotas come of a change: what one gets more, "default" has less. */
export function preview(
  clusters: readonly IVirtualCluster[],
  one: IVirtualCluster | null,
  least: number,
  most: number,
  trans: ITranslation
): IPreview {
  const valid = (percent: number) => percent >= 0 && percent <= 100;
  const more = valid(least) ? least - (one?.capacity ?? 0) : 0;
  const [{ of, total } = { of: 'GPUs' as const, total: 0 }] = clusters;
  const words = (percent: number) => {
    const amount = Math.floor((total * percent) / 100);
    return of === 'GPUs' ? trans._n('%1 GPU', '%1 GPUs', amount) : trans._n('%1 CPU', '%1 CPUs', amount);
  };
  const all = [
    ...clusters.map(({ name, capacity }) => ({ name, capacity })),
    ...(one ? [] : [{ name: '', capacity: 0 }])
  ];
  const rows = all.map(({ name, capacity }) => {
    const change = name === (one?.name ?? '') ? more : name === 'default' ? -more : 0;
    const after = round(capacity + change);
    return { name, before: round(capacity), after, words: words(Math.max(0, after)) };
  });
  const rest = rows.find(({ name }) => name === 'default');
  const mistake =
    !valid(least) || !valid(most)
      ? trans.__('A quota must be a number from 0 to 100.')
      : most < least
        ? trans.__('The maximum quota must not be below the guaranteed one.')
        : rest && rest.after < 0
          ? trans.__('There is not enough quota: “default” has %1 % left to give.', rest.before)
          : '';
  return { rows, mistake };
}

type IWindow = Omit<IMaintenance, 'by'>;

/** Ask when some nodes are in maintenance, and why; `null`: it is not meant. */
export function askMaintenance({ root, trans }: IHost, nodes: readonly string[], now: number): Promise<IWindow | null> {
  function Content({ answer }: { answer: (window: IWindow | null) => void }): React.ReactElement {
    const [name, setName] = React.useState('');
    const [reason, setReason] = React.useState('');
    const [begin, setBegin] = React.useState(localTime(now + 3_600_000));
    const [end, setEnd] = React.useState(localTime(now + 3 * 3_600_000));
    const [from, to] = [begin, end].map(time => new Date(time).getTime()) as [number, number];
    const mistake = to > from ? '' : trans.__('The end must be later than the beginning.');
    const time = (label: string, value: string, set: (value: string) => void) => (
      <Field label={label} needed>
        {input => <input type="datetime-local" {...input} value={value} onChange={({ target }) => set(target.value)} />}
      </Field>
    );
    return (
      <form
        className="pai-AdminForm"
        onSubmit={event => {
          event.preventDefault();
          answer({ name: name.trim(), nodes: [...nodes], begin: from, end: to, reason: reason.trim() });
        }}
      >
        <p>
          {trans.__(
            'From the beginning to the end nothing starts on %1; before it, only jobs start there whose time limit ends by then. What still runs goes on.',
            nodes.join(', ')
          )}
        </p>
        <TextField label={trans.__('Name')} needed value={name} onChange={setName} />
        {time(trans.__('Beginning'), begin, setBegin)}
        {time(trans.__('End'), end, setEnd)}
        <TextField
          label={trans.__('Reason')}
          needed
          value={reason}
          mistakes={mistake ? [mistake] : []}
          onChange={given => setReason(given.slice(0, LONGEST))}
        />
        <DialogButtons
          accept={trans.__('Plan maintenance')}
          cancel={trans.__('Cancel')}
          focus={false}
          disabled={mistake !== '' || name.trim() === '' || reason.trim() === ''}
          onCancel={() => answer(null)}
        />
      </form>
    );
  }
  return openDialog<IWindow | null>(root, trans.__('Plan maintenance'), answer => <Content answer={answer} />);
}

/** Say what was refused, if anything was. */
export async function sayRefused(host: IHost, refused: readonly string[]): Promise<void> {
  if (refused.length > 0) {
    const { trans } = host;
    await showError(
      host,
      trans._n('%1 action was refused', '%1 actions were refused', refused.length),
      new Error(refused.join('\n'))
    );
  }
}

function number(text: string): number {
  return text.trim() === '' ? NaN : Number(text);
}

function round(percent: number): number {
  return Math.round(percent * 1000) / 1000;
}

function per(percent: number): string {
  return `${percent} %`;
}

function listed(text: string): string[] {
  return text
    .split(',')
    .map(name => name.trim())
    .filter(Boolean);
}

/** Write a time as inputs have it, on the browser's clock. */
function localTime(time: number): string {
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 16);
}
