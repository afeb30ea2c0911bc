// Says in a sentence why the notebook server gave no answer; what the browser says of it is none ("Failed to fetch").

import { ITranslation } from '../host';

type Fetch = (input: RequestInfo, init?: RequestInit) => Promise<Response>;

/**
 * ms that the scheduler's API may take to begin with an answer, or to go on with one: a connection may be cut without
 * anybody being told.
 */
const PATIENCE = 30_000;
/** Of these what is asked for is known to come soon; it is asked again by itself. */
const POLLED = '/pai/api/v1/';
/** Whose answers are watched over until their end: all that we ask for, and nothing of JupyterLab's own. */
const OURS = '/pai/';
/** What is sent again by itself, although it is sent and not asked for. */
const CHECKED = '/pai/api/v1/validate';
const FORBIDDEN = 403;
/** Answers without a body, by the Fetch standard. */
const NO_BODY = [101, 103, 204, 205, 304];

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
export function speaking(fetch: Fetch, ways: ISpeaking, trans: ITranslation, patience = PATIENCE): Fetch {
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

  function lost(again: boolean, cause: unknown): TypeError {
    away = true;
    const message = again
      ? trans.__('Your notebook server does not answer. Your jobs go on; this page asks again by itself.')
      : trans.__(
          'Your notebook server does not answer, and may not have got this. Try again when it answers; what you have typed stays here.'
        );
    return new TypeError(message, { cause });
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
      throw lost(again, error);
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
    // (browsers give such an answer a body, and refuse to make one with it)
    if (answer.body === null || NO_BODY.includes(answer.status) || !new URL(request.url).pathname.includes(OURS)) {
      return answer;
    }
    const body = watched(answer.body, limited ? patience : null, error =>
      request.signal.aborted ? error : lost(again, error)
    );
    return new Response(body, { status: answer.status, statusText: answer.statusText, headers: answer.headers });
  };
}

/**
 * Return what comes of an answer; it fails with what `lost` makes of the reason when the connection is cut, or when
 * nothing comes for `patience` ms while somebody reads (`null`: it may be silent).
 */
function watched(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  patience: number | null,
  lost: (error: unknown) => unknown
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  return new ReadableStream(
    {
      pull: async controller => {
        let timer: ReturnType<typeof setTimeout> | undefined;
        const silence = new Promise<never>((_, reject) => {
          if (patience !== null) {
            timer = setTimeout(() => reject(new Error(`nothing came for ${patience} ms`)), patience);
          }
        });
        try {
          const { done, value } = await Promise.race([reader.read(), silence]);
          if (done) {
            controller.close();
          } else {
            controller.enqueue(value);
          }
        } catch (error) {
          void reader.cancel().catch(() => undefined);
          controller.error(lost(error));
        } finally {
          clearTimeout(timer);
        }
      },
      cancel: reason => reader.cancel(reason)
    },
    // it counts only while somebody reads
    { highWaterMark: 0 }
  );
}
