// Says in a sentence why the server gave no answer; what the browser says of it is none ("Failed to fetch").

import { IQuestion } from '../host';
import { ApiError, UNREACHABLE } from './errors';

/**
 * ms that the scheduler's API may take to begin with an answer, or to go on with one: a connection may be cut without
 * anybody being told.
 */
const PATIENCE = 30_000;
/** Of these what is asked for is known to come soon; it is asked again by itself. */
const POLLED = 'api/v1/';
/** What is sent again by itself, although it is sent and not asked for. */
const CHECKED = 'api/v1/validate';
const FORBIDDEN = 403;
/** Answers without a body, by the Fetch standard. */
export const NO_BODY: readonly number[] = [101, 103, 204, 205, 304];

/** What is said of a server, by its name for people. */
export interface IWords {
  /** It does not answer what is asked again by itself. */
  readonly away: string;
  /** It does not answer, and may not have got what was sent once. */
  readonly lost: string;
  readonly loginExpired: string;
}

/** What else is done about it. */
export interface ISpeaking {
  /** Return whether the server that has refused still knows who asks. */
  isLoggedIn: (refusal: Response) => Promise<boolean>;
  /** Show that it does not; `null`: it does again. */
  show: (message: string | null) => void;
  /** Tell all of the page that there is an answer again. */
  answered: () => void;
}

/** Sees to it that a question fails with a sentence for people, and is not waited for where no answer will come. */
export class Speaking {
  constructor(
    private readonly ways: ISpeaking,
    private readonly words: IWords,
    private readonly patience = PATIENCE
  ) {}

  /**
   * Ask a question; rejects with `ApiError` (status 0) where nobody answers.
   *
   * @param send - does it, until the signal says that nobody waits any more
   */
  async ask(
    { method, path, signal }: Pick<IQuestion, 'method' | 'path' | 'signal'>,
    send: (signal: AbortSignal | undefined) => Promise<Response>
  ): Promise<Response> {
    const address = path.join('/');
    const again = method === 'GET' || address === CHECKED;
    const patience = again && address.startsWith(POLLED) ? this.patience : null;
    const limit = new AbortController();
    const timer = patience === null ? undefined : setTimeout(() => limit.abort(), patience);
    let answer: Response;
    try {
      const signals = [...(signal ? [signal] : []), ...(patience === null ? [] : [limit.signal])];
      answer = await send(signals.length > 1 ? AbortSignal.any(signals) : signals[0]);
    } catch (error) {
      if (signal?.aborted) {
        throw error; // who has asked does not want it any more
      }
      throw this.lost(again, error);
    } finally {
      clearTimeout(timer);
    }
    if (answer.status === FORBIDDEN && !(await this.ways.isLoggedIn(answer).catch(() => true))) {
      return this.login();
    }
    if (answer.ok) {
      this.back();
    }
    // (browsers give such an answer a body, and refuse to make one with it)
    if (answer.body === null || NO_BODY.includes(answer.status)) {
      return answer;
    }
    const body = watched(answer.body, patience, error => (signal?.aborted ? error : this.lost(again, error)));
    return new Response(body, { status: answer.status, statusText: answer.statusText, headers: answer.headers });
  }

  private back(): void {
    if (this.loggedOut) {
      this.ways.show(null);
    }
    if (this.away || this.loggedOut) {
      this.away = this.loggedOut = false;
      this.ways.answered();
    }
  }

  private lost(again: boolean, cause: unknown): ApiError {
    this.away = true;
    const error = new ApiError(0, UNREACHABLE, again ? this.words.away : this.words.lost);
    error.cause = cause;
    return error;
  }

  private login(): Response {
    const message = this.words.loginExpired;
    this.loggedOut = true;
    this.ways.show(message);
    const headers = { 'Content-Type': 'application/json' };
    return new Response(JSON.stringify({ code: 'LoginExpired', message }), { status: FORBIDDEN, headers });
  }

  private away = false;
  private loggedOut = false;
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

/**
 * Send with an XMLHttpRequest, as `fetch` does not tell how much has gone off.
 *
 * @param onUpload - told how many bytes have
 */
export function sendTold(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body: XMLHttpRequestBodyInit | null,
  onUpload: (bytes: number) => void,
  signal: AbortSignal | undefined
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) {
      request.setRequestHeader(name, value);
    }
    request.upload.onprogress = event => onUpload(event.loaded);
    request.onload = () => {
      const { status, statusText, responseText } = request;
      resolve(new Response(NO_BODY.includes(status) ? null : responseText, { status, statusText }));
    };
    request.onerror = () => reject(new TypeError('the connection broke off'));
    request.onabort = () => reject(new DOMException('cancelled', 'AbortError'));
    request.onloadend = () => signal?.removeEventListener('abort', abort);
    if (signal?.aborted) {
      reject(new DOMException('cancelled', 'AbortError'));
      return;
    }
    signal?.addEventListener('abort', abort);
    request.send(body);
  });
}

/** Return what a request has to show that it comes from our own page. */
export function xsrf(): string {
  return /(?:^|; *)_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? '';
}
