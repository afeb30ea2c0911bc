// Tells that a job of one's own has ended, while one looks at something else or not at JupyterLab at all.

import type { Notification, NotificationManager } from '@jupyterlab/apputils';

import { IJob } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { IJobsModel, isActive, key } from '../../console/data/jobs';
import { BrowserNotices } from './browser';

/** ms for which good news is shown; bad news stays until it is closed. */
const SHOWN = 10_000;
/** How many jobs are named in a notice of many. */
const NAMED = 3;
/** Jobs that notebook servers and kernels are: these tell of their ends themselves. */
const SERVERS = /^(notebook|kernel)_[0-9a-f]{8}$/;

/** What becomes of the end of a job. */
export interface IEnds {
  /** Show the job. */
  open(job: IJob): void;
  /** Show all jobs. */
  list(): void;
  /** Return whether the person wants to be told of its end. */
  wanted(job: IJob): boolean;
  /** Shows it outside of the page while that is hidden. */
  readonly inBrowser: Pick<BrowserNotices, 'show'>;
}

/** Notifies of jobs that were seen waiting or running, and now have ended, unless this page has stopped them. */
export class EndedNotices {
  constructor(
    private readonly model: IJobsModel,
    private readonly ends: IEnds,
    private readonly notifications: Pick<NotificationManager, 'has' | 'notify' | 'update'>,
    private readonly trans: ITranslation
  ) {
    model.changed.connect(() => this.look());
  }

  private look(): void {
    // without an answer nothing has ended
    if (this.model.jobs === null || this.model.error) {
      return;
    }
    for (const job of this.model.jobs.filter(job => this.active.has(key(job)) && !isActive(job))) {
      this.tell(job);
    }
    this.active = new Set(this.model.jobs.filter(isActive).map(key));
  }

  private tell(job: IJob): void {
    const { trans } = this;
    // who has stopped a job here knows; another person, an administrator or a command may have done so too
    const known = job.state === 'STOPPED' && this.model.isStoppedHere(job);
    if (SERVERS.test(job.name) || this.model.isOwnServer(job) || known) {
      return;
    }
    if (!this.ends.wanted(job)) {
      return;
    }
    const [message, type] =
      job.state === 'SUCCEEDED'
        ? ([trans.__('%1 has succeeded.', job.name), 'success'] as const)
        : job.state === 'STOPPED'
          ? ([trans.__('%1 was stopped.', job.name), 'warning'] as const)
          : ([trans.__('%1 has failed.', job.name), 'error'] as const);
    if (type === 'success') {
      this.notifications.notify(message, type, { autoClose: SHOWN, actions: [this.show(() => this.ends.open(job))] });
    } else {
      this.tellBad(job, message, type);
    }
    this.ends.inBrowser.show(job, message);
  }

  /** Tell of an end that is no success: one notice has all of them until it is closed, however many they are. */
  private tellBad(job: IJob, message: string, type: 'warning' | 'error'): void {
    const { trans } = this;
    if (this.bad === null || !this.notifications.has(this.bad.id)) {
      const actions = [this.show(() => this.ends.open(job))];
      const id = this.notifications.notify(message, type, { autoClose: false, actions });
      this.bad = { id, type, count: 1, last: [job.name] };
      return;
    }
    const { id } = this.bad;
    const count = this.bad.count + 1;
    const last = [job.name, ...this.bad.last].slice(0, NAMED);
    this.bad = { id, type: this.bad.type === 'error' ? 'error' : type, count, last };
    this.notifications.update({
      id,
      type: this.bad.type,
      message: trans.__('%1 jobs have failed or were stopped; the last ones: %2', count, last.join(', ')),
      autoClose: false,
      actions: [this.show(() => this.ends.list())]
    });
  }

  private show(callback: () => void): Notification.IAction {
    return { label: this.trans.__('Show'), callback };
  }

  private active = new Set<string>();
  /** The notice of ends that are no successes, how many it tells of, and the last of them; `null`: there was none yet. */
  private bad: { id: string; type: 'warning' | 'error'; count: number; last: readonly string[] } | null = null;
}
