// Tells that a job of one's own has ended, while one looks at something else or not at JupyterLab at all.

import type { Notification, NotificationManager } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { IJob } from '../api';
import { isActive, key } from '../jobs';
import { IJobsModel } from '../model';
import { BrowserNotices } from './browser';

/** ms for which good news is shown; bad news stays until it is closed. */
const SHOWN = 10_000;
/** Jobs that notebook servers and kernels are: these tell of their ends themselves. */
const SERVERS = /^(notebook|kernel)_[0-9a-f]{8}$/;

/** What becomes of the end of a job. */
export interface IEnds {
  /** Show the job. */
  open(job: IJob): void;
  /** Return whether the person wants to be told of its end. */
  wanted(job: IJob): boolean;
  /** Shows it outside of the page while that is hidden. */
  readonly inBrowser: Pick<BrowserNotices, 'show'>;
}

/** Shows a notification for each job that was seen waiting or running, and now has ended, unless this page has stopped it. */
export class EndedNotices {
  constructor(
    private readonly model: IJobsModel,
    private readonly ends: IEnds,
    private readonly notifications: Pick<NotificationManager, 'notify'>,
    private readonly trans: TranslationBundle
  ) {
    model.changed.connect(this.look, this);
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
    const actions: Notification.IAction[] = [{ label: trans.__('Show'), callback: () => this.ends.open(job) }];
    const succeeded = job.state === 'SUCCEEDED';
    const [message, type] = succeeded
      ? ([trans.__('%1 has succeeded.', job.name), 'success'] as const)
      : job.state === 'STOPPED'
        ? ([trans.__('%1 was stopped.', job.name), 'warning'] as const)
        : ([trans.__('%1 has failed.', job.name), 'error'] as const);
    this.notifications.notify(message, type, {
      autoClose: succeeded ? SHOWN : false,
      actions
    });
    this.ends.inBrowser.show(job, message);
  }

  private active = new Set<string>();
}
