// Which tasks of the listed jobs have ports, asked while the list is in view.

import { Client } from '../../console/data/client';
import { fewAtOnce, IDisposable, Poll, Signal } from '../../console/data/store';
import { IJobsModel, isOpen, key } from '../../console/data/jobs';
import { IRunningTask, tasksOfJob } from '../../console/access/tasks';

/** ms between two questions, and at most after failed ones. */
const INTERVAL = 15_000;
const MAX_INTERVAL = 120_000;
/** Of how many running jobs the tasks are asked for, each a request, and how many of these at once. */
const JOBS = 20;
const AT_ONCE = 2;

/** Knows the ports of the running jobs. */
export class JobPorts implements IDisposable {
  constructor(
    private readonly jobs: IJobsModel,
    private readonly client: Client
  ) {
    this.poll = new Poll(() => this.ask(), { interval: INTERVAL, max: MAX_INTERVAL });
    this.deaf = jobs.changed.connect(() => this.compare());
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  /** List the running tasks of a job that have ports, as far as they are known. */
  of(job: Parameters<typeof key>[0]): readonly IRunningTask[] {
    return this.tasks.get(key(job)) ?? [];
  }

  /** Return the link to a port. */
  url(task: IRunningTask, label: string): string {
    return this.client.portUrl(task, label);
  }

  /** Note that the list came into view, or went. */
  setShown(shown: boolean): void {
    this.shown = shown;
    if (shown) {
      this.poll.start();
    } else {
      this.poll.stop();
    }
  }

  dispose(): void {
    this.deaf();
    this.poll.dispose();
    this.changed.clear();
  }

  private get running() {
    return (this.jobs.jobs ?? []).filter(isOpen).slice(0, JOBS);
  }

  /** A job that has begun to run is asked about at once. */
  private compare(): void {
    if (this.shown && this.running.some(job => !this.tasks.has(key(job)))) {
      void this.poll.refresh();
    }
  }

  private async ask(): Promise<void> {
    const { running } = this;
    const found = new Map<string, readonly IRunningTask[]>();
    await fewAtOnce(running, AT_ONCE, async job => {
      // of a job that could not be asked about nothing is known: not asked again before its turn
      const tasks = await tasksOfJob(job, this.client).catch((): IRunningTask[] => []);
      found.set(
        key(job),
        tasks.filter(({ ports }) => ports.length > 0)
      );
    });
    this.tasks = found;
    if (!this.isDisposed) {
      this.changed.emit();
    }
  }

  private readonly poll: Poll;
  private readonly deaf: () => void;
  private tasks = new Map<string, readonly IRunningTask[]>();
  private shown = false;
}
