// How high the rows of the list will be before they are drawn: as those like them were.

import { IJob } from '../../console/data/client';

/** px that a row is taken to be high until one like it was drawn. */
const FIRST = 58;

/** What a row says besides what the list knows: why the job waits, and how many of its tasks have ports. */
export interface ISaid {
  readonly reason: string | undefined;
  readonly ports: number;
}

/** Where a row is as high as it was taken to be, thousands of others need not be laid out anew when it is drawn. */
export class RowHeights {
  /** Return how high a job's row will be, in px. */
  of(job: IJob, said: ISaid): number {
    return this.heights.get(likeness(job, said)) ?? FIRST;
  }

  /** Note how high a job's row is, in px. */
  note(job: IJob, said: ISaid, height: number): void {
    this.heights.set(likeness(job, said), height);
  }

  private readonly heights = new Map<string, number>();
}

/** Name what makes rows as high as each other, for the most part. */
function likeness(job: IJob, { reason, ports }: ISaid): string {
  const facts = `${job.state} ${job.totalGpuNumber > 0} ${job.appExitCode !== null}`;
  return `${facts} ${job.name.length >> 3} ${reason?.length ?? 0} ${ports}`;
}
