// Which jobs are listed, in which order, and which of these are chosen.

import { IJob, JobState } from '../data/client';
import { isActive } from '../data/jobs';

/** What a list can be ordered by. */
export const ORDERS = ['state', 'newest', 'name'] as const;
export type Order = (typeof ORDERS)[number];

/** What is looked for. */
export interface IArrangement {
  /** Each word stands in the name; upper or lower case. */
  readonly words: string;
  /** The only state; `null`: any. */
  readonly state: JobState | null;
  readonly order: Order;
}

/** How it is shown at first. */
export const PLAIN: IArrangement = { words: '', state: null, order: 'state' };

const RANKS: Partial<Record<JobState, number>> = { RUNNING: 0, WAITING: 1 };
const LAST = 2;
const names = new Intl.Collator(undefined, { numeric: true });

/** Return the jobs that are looked for, in order; `jobs` come newest first. */
export function arrange(jobs: readonly IJob[], { words, state, order }: IArrangement): readonly IJob[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = jobs.filter(job => {
    const name = job.name.toLowerCase();
    return (state === null || job.state === state) && wanted.every(word => name.includes(word));
  });
  switch (order) {
    case 'newest':
      return found;
    case 'name':
      return found.sort((one, other) => names.compare(one.name, other.name));
    case 'state':
      return found.sort(byState);
  }
}

/** What runs comes first, the newest before the others; then what waits, by its place; then what ended last. */
function byState(one: IJob, other: IJob): number {
  return (
    rank(one) - rank(other) ||
    (one.state === 'WAITING' ? place(one) - place(other) || one.createdTime - other.createdTime : 0) ||
    (isActive(one) ? 0 : (other.completedTime ?? 0) - (one.completedTime ?? 0)) ||
    other.createdTime - one.createdTime
  );
}

function rank(job: IJob): number {
  return RANKS[job.state] ?? LAST;
}

function place(job: IJob): number {
  return job.queuePlace ?? Number.MAX_SAFE_INTEGER;
}

// Which rows of a list are chosen, by their keys.

/** `anchor` is where a range begins that is chosen with Shift. */
export interface ISelection {
  readonly chosen: ReadonlySet<string>;
  readonly anchor: string | null;
}

export const NOTHING: ISelection = { chosen: new Set(), anchor: null };

/** Choose a row, or give it up. */
export function toggled({ chosen }: ISelection, row: string): ISelection {
  const others = new Set(chosen);
  if (!others.delete(row)) {
    others.add(row);
  }
  return { chosen: others, anchor: row };
}

/** Choose all rows from the anchor to a row, besides those that are chosen; `rows` are all, in order. */
export function extended({ chosen, anchor }: ISelection, rows: readonly string[], row: string): ISelection {
  const to = rows.indexOf(row);
  const from = anchor === null ? -1 : rows.indexOf(anchor);
  const [first, last] = from === -1 ? [to, to] : [Math.min(from, to), Math.max(from, to)];
  return { chosen: new Set([...chosen, ...rows.slice(first, last + 1)]), anchor: from === -1 ? row : anchor };
}

/** Choose all of these rows; nothing where they are chosen already. */
export function allOrNone(selection: ISelection, rows: readonly string[]): ISelection {
  return isWhole(selection, rows) ? NOTHING : { chosen: new Set(rows), anchor: null };
}

/** Return whether there are rows, and all of them are chosen. */
export function isWhole({ chosen }: ISelection, rows: readonly string[]): boolean {
  return rows.length > 0 && rows.every(row => chosen.has(row));
}
