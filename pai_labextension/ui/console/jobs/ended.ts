// Tells that a job of one's own has ended, while one looks at something else or not at the page at all.

import { IJob } from '../data/client';
import { IJobsModel, isActive, key } from '../data/jobs';
import { IHost, Place } from '../host';
import { INoticeAction, INotices } from '../kit/notices';

/** ms for which good news is shown; bad news stays until it is closed. */
const SHOWN = 10_000;
/** How many jobs are named in a notice of many. */
const NAMED = 3;
/** Jobs that notebook servers and kernels are: these tell of their ends themselves. */
const SERVERS = /^(notebook|kernel)_[0-9a-f]{8}$/;

/** Of which ends a person wants to be told, and where. */
export interface INoticeSettings {
  readonly tell: 'all' | 'long' | 'failed' | 'none';
  /** What is longer is told of where `tell` is "long". */
  readonly minutes: number;
  /** Whether the browser shows them too while the page is hidden. */
  readonly browser: boolean;
}

/** What holds where nothing is set. */
export const DEFAULTS: INoticeSettings = { tell: 'all', minutes: 10, browser: false };

/** Return whether the end of this job is to be told of. */
export function isWanted({ tell, minutes }: INoticeSettings, job: IJob): boolean {
  switch (tell) {
    case 'all':
      return true;
    case 'failed':
      // one that somebody has stopped has not done its work either
      return job.state !== 'SUCCEEDED';
    case 'long':
      return (job.completedTime ?? Date.now()) - job.createdTime > minutes * 60_000;
    case 'none':
      return false;
  }
}

/** What becomes of the end of a job. */
export interface IEnds {
  /** Return whether the person wants to be told of its end. */
  wanted(job: IJob): boolean;
  /** Shows it outside of the page while that is hidden. */
  readonly inBrowser: Pick<BrowserNotices, 'show'>;
}

/** Notifies of jobs that were seen waiting or running, and now have ended, unless this page has stopped them. */
export class EndedNotices {
  constructor(
    private readonly host: Pick<IHost, 'places' | 'trans'>,
    private readonly model: IJobsModel,
    private readonly ends: IEnds,
    private readonly notifications: Pick<INotices, 'has' | 'notify' | 'update'>
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
    const { trans } = this.host;
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
      this.notifications.notify(message, type, { autoClose: SHOWN, actions: [this.show({ page: 'job', job })] });
    } else {
      this.tellBad(job, message, type);
    }
    this.ends.inBrowser.show(job, message);
  }

  /** Tell of an end that is no success: one notice has all of them until it is closed, however many they are. */
  private tellBad(job: IJob, message: string, type: 'warning' | 'error'): void {
    const { trans } = this.host;
    if (this.bad === null || !this.notifications.has(this.bad.id)) {
      const actions = [this.show({ page: 'job', job })];
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
      actions: [this.show({ page: 'jobs' })]
    });
  }

  private show(place: Place): INoticeAction {
    return { label: this.host.trans.__('Show'), callback: () => this.host.places.open(place) };
  }

  private active = new Set<string>();
  /** The notice of ends that are no successes, how many it tells of, and the last of them; `null`: there was none yet. */
  private bad: { id: string; type: 'warning' | 'error'; count: number; last: readonly string[] } | null = null;
}

/** What may be shown; "insecure": browsers show nothing of a page that came over plain HTTP. */
export type Permission = NotificationPermission | 'insecure';

/** Shows the ends of jobs as notifications of the browser itself while the page is hidden, once the person has allowed it. */
export class BrowserNotices {
  constructor(private readonly host: Pick<IHost, 'places' | 'trans'>) {}

  get permission(): Permission {
    if (!window.isSecureContext) {
      return 'insecure';
    }
    return 'Notification' in window ? Notification.permission : 'denied';
  }

  /** Let the browser ask the person; to be called from what they have clicked, or some browsers refuse at once. */
  async ask(): Promise<Permission> {
    return this.permission === 'default' ? Notification.requestPermission() : this.permission;
  }

  /** Say why nothing is shown, and what to do; empty where it is. */
  obstacle(): string {
    const { trans } = this.host;
    switch (this.permission) {
      case 'granted':
        return '';
      case 'insecure':
        return trans.__(
          'Browsers show notifications only of pages that come over HTTPS. Ask your administrator for such an address.'
        );
      case 'denied':
        return trans.__(
          'The browser does not show notifications of this page. Allow them in its settings for this page, beside the address.'
        );
      case 'default':
        return trans.__('The browser shows notifications of ended jobs only when you allow it.');
    }
  }

  /** Show it if nobody sees the page. A click on it comes back to the page and opens the job. */
  show(job: IJob, message: string): void {
    if (!document.hidden || this.permission !== 'granted') {
      return;
    }
    // of several pages of one person the browser shows one notification
    const tag = `pai-${key(job)}-${job.createdTime}`;
    const shown = new Notification(message, { tag, body: this.host.trans.__('PAI for Jupyter') });
    shown.onclick = () => {
      window.focus();
      shown.close();
      this.host.places.open({ page: 'job', job });
    };
  }
}
