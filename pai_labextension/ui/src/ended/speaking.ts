// Says in a sentence why the notebook server gave no answer; what the browser says of it is none ("Failed to fetch").

import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';

type Fetch = ServerConnection.ISettings['fetch'];

/** ms that the scheduler's API may take to begin with an answer: a connection may be cut without anybody being told. */
const PATIENCE = 30_000;
/** Of these what is asked for is known to come soon; it is asked again by itself. */
const POLLED = '/pai/api/v1/';
/** What is sent again by itself, although it is sent and not asked for. */
const CHECKED = '/pai/api/v1/validate';
const FORBIDDEN = 403;

/** What else is done about it. */
export interface ISpeaking {
  /** Return whether the server still knows who sent a request. */
  isLoggedIn: (request: Request) => Promise<boolean>;
  /** Show that it does not; `null`: it does again. */
  show: (message: string | null) => void;
  /** Tell all of the page that there is an answer again. */
  answered: () => void;
}

/** Return a `fetch` that fails with a sentence for people, and gives up waiting for an answer that will not come. */
export function speaking(fetch: Fetch, ways: ISpeaking, trans: TranslationBundle, patience = PATIENCE): Fetch {
  let away = false;
  let loggedOut = false;

  function back(): void {
    if (loggedOut) {
      ways.show(null);
    }
    if (away || loggedOut) {
      away = loggedOut = false;
      ways.answered();
    }
  }

  function login(): Response {
    const message = trans.__(
      'Your login has expired. Log in again in another tab of this browser: this page goes on by itself then, and keeps what you have typed.'
    );
    loggedOut = true;
    ways.show(message);
    const headers = { 'Content-Type': 'application/json' };
    return new Response(JSON.stringify({ code: 'LoginExpired', message }), { status: FORBIDDEN, headers });
  }

  return async (input, init) => {
    const request = new Request(input, init);
    const again = request.method === 'GET' || new URL(request.url).pathname.endsWith(CHECKED);
    const limit = new AbortController();
    const limited = again && request.url.includes(POLLED);
    const timer = limited ? setTimeout(() => limit.abort(), patience) : undefined;
    let answer: Response;
    try {
      const signal = limited ? AbortSignal.any([request.signal, limit.signal]) : request.signal;
      answer = await fetch(request, { signal });
    } catch (error) {
      if (request.signal.aborted) {
        throw error; // who has asked does not want it any more
      }
      away = true;
      throw new TypeError(
        again
          ? trans.__('Your notebook server does not answer. Your jobs go on; this page asks again by itself.')
          : trans.__(
              'Your notebook server does not answer, and may not have got this. Try again when it answers; what you have typed stays here.'
            ),
        { cause: error }
      );
    } finally {
      clearTimeout(timer);
    }
    if (answer.status === FORBIDDEN) {
      const known = await ways.isLoggedIn(request).catch(() => true);
      if (!known) {
        return login();
      }
    }
    // (the server's pictures and the like are open to all)
    if (answer.ok) {
      back();
    }
    return answer;
  };
}
