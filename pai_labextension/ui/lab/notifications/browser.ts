// Notifications of the browser itself, which are seen while JupyterLab's page is not.

import { IJob } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { key } from '../../console/data/jobs';

/** What may be shown; "insecure": browsers show nothing of a page that came over plain HTTP. */
export type Permission = NotificationPermission | 'insecure';

/** Shows the ends of jobs while the page is hidden, once the person has allowed it. */
export class BrowserNotices {
  /** @param open - shows a job */
  constructor(
    private readonly open: (job: IJob) => void,
    private readonly trans: ITranslation
  ) {}

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
    const { trans } = this;
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
    const shown = new Notification(message, { tag, body: this.trans.__('PAI for Jupyter') });
    shown.onclick = () => {
      window.focus();
      shown.close();
      this.open(job);
    };
  }
}
