// What is said when the server does not answer: that it runs on, or how it has ended.

import { ITranslation } from '../../console/host';
import { IHubServer } from './hub';

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
  confirm: (question: { title: string; body: string; accept: string; reject: string }) => Promise<boolean>;
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
      body: told.join('\n\n') || trans.__('It does not run any more.'),
      accept: trans.__('Start again'),
      reject: trans.__('Stay here')
    });
    if (again) {
      this.ways.leave('spawn');
    }
  }

  private busy = false;
}
