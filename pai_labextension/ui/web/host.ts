// A page of the Hub's as the place where the console is mounted: its server, its language, its addresses.

import { Client } from '../console/data/client';
import { json } from '../console/data/errors';
import { sendTold, Speaking, xsrf } from '../console/data/speaking';
import { Signal, tellAnswered } from '../console/data/store';
import { IChannel, IHeard, overWebSocket } from '../console/data/stream';
import { addressOf, carried, IHost, INavigator, IQuestion, ITranslation, ITransport, Query } from '../console/host';

/** What the server has written into the page. */
export interface IPageFacts {
  readonly user: string;
  readonly administrator: boolean;
  /** Paths, with a slash at both ends: of this service, and of the Hub's own pages. */
  readonly prefix: string;
  readonly hub: string;
  /** As browsers name it ("zh-CN"). */
  readonly language: string;
  /** What the cluster calls its storage, as a URI. */
  readonly storageRoot: string;
  /** The file of the translation, below `static/`; empty for English. */
  readonly translation: string;
  /** By which style sheets are known that a library writes; on the page of a terminal. */
  readonly nonce?: string;
}

/** The code of a refusal because nobody is logged in any more. */
const LOGIN_EXPIRED = 'LoginExpired';
/** The same, of a WebSocket that is closed. */
const LOGGED_OUT = 4401;

/** Asks the console's own server, with the Hub's login. */
export class WebTransport implements ITransport {
  constructor(
    private readonly facts: IPageFacts,
    trans: ITranslation
  ) {
    this.speaking = new Speaking(
      {
        isLoggedIn: async refusal =>
          (json(await refusal.clone().text()) as { code?: string } | undefined)?.code !== LOGIN_EXPIRED,
        show: message => this.loggedOut.emit(message !== null),
        answered: tellAnswered
      },
      {
        away: trans.__('The Hub does not answer. Your jobs go on; this page asks again by itself.'),
        lost: trans.__(
          'The Hub does not answer, and may not have got this. Try again when it answers; what you have typed stays here.'
        ),
        loginExpired: trans.__('Your login has expired.')
      }
    );
  }

  /** Tells that the login has ended, or is there again. */
  readonly loggedOut = new Signal<boolean>();

  async request(question: IQuestion): Promise<Response> {
    const { method, path, query, onUpload } = question;
    const { headers, body } = carried(question, this.facts.language);
    headers['X-XSRFToken'] = xsrf();
    const url = this.href(path, query);
    return this.speaking.ask(question, signal =>
      onUpload
        ? sendTold(url, method, headers, body, onUpload, signal)
        : fetch(url, { method, headers, body, signal: signal ?? null })
    );
  }

  href(path: readonly string[], query?: Query): string {
    return this.facts.prefix + addressOf(path, query);
  }

  resolve(link: string): string {
    return new URL(link, new URL(this.facts.prefix, location.href)).href;
  }

  connect(heard: IHeard): IChannel {
    return overWebSocket(this.socket(['stream']), heard);
  }

  socket(path: readonly string[]): WebSocket {
    const socket = new WebSocket(new URL(this.href(path), location.href.replace(/^http/, 'ws')));
    // any page may open one with the person's cookies; only ours knows this
    socket.addEventListener('open', () => socket.send(xsrf()));
    socket.addEventListener('close', ({ code }) => code === LOGGED_OUT && this.loggedOut.emit(true));
    return socket;
  }

  private readonly speaking: Speaking;
}

/** Make the host of a page. */
export function webHost(transport: WebTransport, trans: ITranslation, facts: IPageFacts, places: INavigator): IHost {
  return {
    transport,
    client: new Client(transport, trans),
    trans,
    language: facts.language,
    facts: {
      ownServer: '',
      storageRoot: facts.storageRoot,
      hasPorts: true,
      isAdministrator: facts.administrator,
      styleNonce: facts.nonce
    },
    places,
    root: document.body
  };
}
