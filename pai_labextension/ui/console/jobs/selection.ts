// Which jobs are listed, and in which order.

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
