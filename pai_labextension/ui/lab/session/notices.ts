// What JupyterLab tells about the session: that it is to end, that it was ended, and what an administrator says.

import type { Notification, NotificationManager } from '@jupyterlab/apputils';

import { IMessage, ISession } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { IHubServer } from '../ended/hub';
import { SessionModel } from './model';
import { duration } from './words';

/** Remembers which messages were seen; of one job. */
export interface ISeen {
  read(): number;
  write(id: number): void;
}

/** ms between two questions to the Hub while the server is still being stopped, or the Hub is away. */
const AGAIN = 3_000;
/** What the Hub calls the end of a server that its service ended: by the rules, or for an administrator. */
const SESSION_ENDED = 'session-ended';

/** JupyterLab's notifications. */
export type INotifications = Pick<NotificationManager, 'notify' | 'update' | 'dismiss'>;

/** Shows notifications of JupyterLab's own kind, one for each matter. */
export class SessionNotices {
  /**
   * @param askHub - tells what became of the server; rejects while the Hub is away, `null`: it does not say
   * @param startAgain - opens the Hub's page that starts this server; `null`: there is none
   */
  constructor(
    private readonly model: SessionModel,
    private readonly seen: ISeen,
    private readonly askHub: () => Promise<IHubServer | null>,
    private readonly startAgain: (() => void) | null,
    private readonly notifications: INotifications,
    private readonly trans: ITranslation,
    private readonly again = AGAIN
  ) {
    model.changed.connect(() => this.show());
  }

  private show(): void {
    const { session, error, left } = this.model;
    if (session === null) {
      return;
    }
    if (error) {
      // what was not warned of is a stop or a failure, which others tell
      if (session.warned && this.model.stopped) {
        void this.learnOfEnd();
      }
      return;
    }
    this.sayWarning(session, left);
    for (const message of session.messages.filter(({ id }) => id > this.seen.read())) {
      this.sayMessage(message);
    }
  }

  private sayWarning(session: ISession, left: number | null): void {
    if (!session.warned || left === null) {
      this.dismiss();
      return;
    }
    const text = `${session.why} ${this.trans.__('It ends in %1.', duration(left, this.trans))}`;
    const said = `${session.mayKeep} ${text}`;
    if (said === this.said) {
      return;
    }
    this.said = said;
    const actions: Notification.IAction[] = session.mayKeep
      ? [
          {
            label: this.trans.__('Keep'),
            caption: this.trans.__('Put the end of this session off'),
            displayType: 'accent',
            callback: event => {
              event.preventDefault(); // it goes when the end is put off
              void this.keep();
            }
          }
        ]
      : [];
    if (this.warning === null) {
      this.warning = this.notifications.notify(text, 'warning', { autoClose: false, actions });
    } else {
      this.notifications.update({ id: this.warning, message: text, type: 'warning', autoClose: false, actions });
    }
  }

  private async keep(): Promise<void> {
    try {
      await this.model.keep();
      this.notifications.notify(this.trans.__('This session is kept.'), 'success', { autoClose: 5000 });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.notifications.notify(message, 'error', { autoClose: false });
    }
  }

  /** Find who ended the session: that an end was warned of does not tell that it was this one. */
  private async learnOfEnd(): Promise<void> {
    if (this.learning || this.ended) {
      return;
    }
    this.learning = true;
    try {
      while (this.model.stopped && !this.model.isDisposed) {
        const server = await this.askHub().catch(() => undefined);
        if (server === null) {
          return this.sayEnded('');
        }
        if (server?.state === 'ended' || server?.state === 'off') {
          return server.kind === SESSION_ENDED ? this.sayEnded(server.reason) : this.dismiss();
        }
        await new Promise(resolve => setTimeout(resolve, this.again));
      }
    } finally {
      this.learning = false;
    }
  }

  private sayEnded(why: string): void {
    this.ended = true;
    this.dismiss();
    const startAgain = this.startAgain;
    const text = this.trans.__('This session was ended; your files are kept.');
    this.notifications.notify(why ? `${text} ${why}` : text, 'info', {
      autoClose: false,
      actions: startAgain ? [{ label: this.trans.__('Start again'), callback: () => startAgain() }] : []
    });
  }

  private sayMessage({ id, sender, text }: IMessage): void {
    this.seen.write(id);
    this.notifications.notify(this.trans.__('%1: %2', sender, text), 'info', { autoClose: false });
  }

  private dismiss(): void {
    this.said = '';
    if (this.warning !== null) {
      this.notifications.dismiss(this.warning);
      this.warning = null;
    }
  }

  private warning: string | null = null;
  private said = '';
  private ended = false;
  private learning = false;
}
