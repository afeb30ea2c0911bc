// What is told of this notebook server's end: that its session is to end, or was ended; that the connection is lost, and
// the server runs on or how it has ended; and what an administrator says.

import { IMessage, ISession } from '../data/client';
import { messageOf } from '../data/errors';
import { ITranslation } from '../host';
import { INoticeAction, INotices } from '../kit/notices';
import { duration, SessionModel } from './notice';

/** A server as the Hub's home shows it. `state`: "running", "waiting", "ended" … */
export interface IHubServer {
  readonly state: string;
  /** The kind of its end: "stopped", "session-ended" …; empty while it has not ended. */
  readonly kind: string;
  /** How it ended, why, and what to do; each may be empty. */
  readonly title: string;
  readonly reason: string;
  readonly advice: string;
}

/** Remembers which messages were seen; of one job. */
export interface ISeen {
  read(): number;
  write(id: number): void;
}

/** ms between two questions to the Hub while the server is still being stopped, or the Hub is away. */
const AGAIN = 3_000;
/** What the Hub calls the end of a server that its service ended: by the rules, or for an administrator. */
const SESSION_ENDED = 'session-ended';

/** Shows one notice for each matter. */
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
    private readonly notifications: Pick<INotices, 'notify' | 'update' | 'dismiss'>,
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
    const actions: INoticeAction[] = session.mayKeep
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
      this.notifications.notify(messageOf(error), 'error', { autoClose: false });
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

/** ms between two questions whether the server answers again. */
const INTERVAL = 5_000;

/** The ways out of the page, and to the person in front of it. */
export interface IWays {
  /** Ask the Hub what became of the server; rejects where the Hub is away, too. */
  askHub: () => Promise<IHubServer | null>;
  /** Return whether the server answers. */
  isBack: () => Promise<boolean>;
  /** Show a warning, in place of the one before. */
  warn: (message: string) => void;
  /** Take the warning away. */
  unwarn: () => void;
  /** Show good news for a moment, and see to it that all of the page hears of it. */
  cheer: (message: string) => void;
  /** Ask whether to go on to the Hub. */
  confirm: (question: { title: string; text: string; accept: string; cancel: string }) => Promise<boolean>;
  /** Go to the Hub's page that starts it, or shows its start. */
  leave: (page: 'spawn' | 'spawn-pending') => void;
}

/** Takes care of one loss at a time: whoever else notices the same one is not heard. */
export class ConnectionLost {
  constructor(
    private readonly ways: IWays,
    private readonly trans: ITranslation,
    private readonly interval = INTERVAL
  ) {}

  /** Say what is known, until the server answers again or the person has been told that it has ended. */
  async tell(): Promise<void> {
    if (this.busy) {
      return;
    }
    this.busy = true;
    try {
      await this.follow();
    } finally {
      this.busy = false;
    }
  }

  private async follow(): Promise<void> {
    let said = false;
    for (;;) {
      if (await this.ways.isBack()) {
        if (said) {
          this.ways.unwarn();
          this.ways.cheer(this.trans.__('The server answers again.'));
        }
        return;
      }
      const server = await this.ways.askHub().catch(() => undefined);
      if (server?.state === 'ended' || server?.state === 'off') {
        this.ways.unwarn();
        return this.ended(server);
      }
      said = true;
      this.ways.warn(this.message(server?.state));
      await new Promise(resolve => setTimeout(resolve, this.interval));
    }
  }

  private message(state: string | undefined): string {
    if (state === 'waiting' || state === 'starting') {
      return this.trans.__('The server was ended with its machine, and is being started again elsewhere.');
    }
    return this.trans.__(
      'The connection is lost. Your server runs on, with all that it computes; this page goes on when it is back.'
    );
  }

  private async ended(server: IHubServer): Promise<void> {
    const { trans } = this;
    const told = [server.title, server.reason, server.advice].filter(sentence => sentence !== '');
    const again = await this.ways.confirm({
      title: trans.__('The server has ended'),
      text: told.join('\n\n') || trans.__('It does not run any more.'),
      accept: trans.__('Start again'),
      cancel: trans.__('Stay here')
    });
    if (again) {
      this.ways.leave('spawn');
    }
  }

  private busy = false;
}
