// How high the rows of the list will be before they are drawn: as those like them were.

import { IJob } from '../api';

/** px that a row is taken to be high until one like it was drawn. */
const FIRST = 58;

/** Where a row is as high as it was taken to be, thousands of others need not be laid out anew when it is drawn. */
export class RowHeights {
  /** Return how high a job's row will be, in px. */
  of(job: IJob): number {
    return this.heights.get(likeness(job)) ?? FIRST;
  }

  /** Note how high a job's row is, in px. */
  note(job: IJob, height: number): void {
    this.heights.set(likeness(job), height);
  }

  private readonly heights = new Map<string, number>();
}

/** Name what makes rows as high as each other, for the most part. */
function likeness(job: IJob): string {
  return `${job.state} ${job.totalGpuNumber > 0} ${job.appExitCode !== null}`;
}
