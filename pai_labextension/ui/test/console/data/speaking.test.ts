import { expect, test, vi } from 'vitest';

import { ISpeaking, Speaking } from '../../../console/data/speaking';
import { IQuestion } from '../../../console/host';

const words = {
  away: 'It does not answer; this page asks again by itself.',
  lost: 'It does not answer; what you have typed stays.',
  loginExpired: 'Your login has expired.'
};
const JOBS = ['api', 'v1', 'jobs'];

function ways(loggedIn = true): ISpeaking & { shown: (string | null)[]; answers: number; loggedIn: boolean } {
  const noted = {
    shown: [] as (string | null)[],
    answers: 0,
    loggedIn,
    isLoggedIn: async () => noted.loggedIn,
    show: (message: string | null) => void noted.shown.push(message),
    answered: () => void (noted.answers += 1)
  };
  return noted;
}

/** Return what asks, by `send`, for the jobs where nothing else is said. */
function asking(send: (signal?: AbortSignal) => Promise<Response>, noted: ISpeaking, patience?: number) {
  const speaking = new Speaking(noted, words, patience);
  return (question: Partial<IQuestion> = {}) => speaking.ask({ method: 'GET', path: JOBS, ...question }, send);
}

const cut = () => Promise.reject(new TypeError('Failed to fetch'));

test('a cut connection is said in a sentence, by what was asked', async () => {
  const ask = asking(cut, ways());
  await expect(ask()).rejects.toThrow('asks again by itself');
  await expect(ask({ method: 'POST' })).rejects.toThrow('what you have typed stays');
  const validate = ['api', 'v1', 'validate'];
  await expect(ask({ method: 'POST', path: validate })).rejects.toThrow('asks again by itself');
});

test('an answer that does not come is not waited for without end', async () => {
  const hangs = (signal?: AbortSignal) =>
    new Promise<Response>((_, reject) => signal!.addEventListener('abort', () => reject(new Error('aborted'))));
  await expect(asking(hangs, ways(), 10)()).rejects.toThrow('does not answer');
});

const begun = (then: (controller: ReadableStreamDefaultController) => void) => async () => {
  const start = (controller: ReadableStreamDefaultController) => {
    controller.enqueue(new TextEncoder().encode('[{"name":'));
    then(controller);
  };
  return new Response(new ReadableStream({ start }));
};

test('an answer that stops in its middle is not waited for without end', async () => {
  const noted = ways();
  const answer = vi.fn(begun(() => undefined));
  const ask = asking(answer, noted, 10);
  await expect((await ask()).text()).rejects.toThrow('asks again by itself');
  answer.mockImplementation(async () => new Response('[]'));
  expect(await (await ask()).text()).toBe('[]');
  expect(noted.answers).toBe(1);
});

test('an answer whose connection is cut in its middle is said in a sentence', async () => {
  const ask = asking(
    begun(controller => controller.error(new TypeError('network error'))),
    ways()
  );
  await expect((await ask()).text()).rejects.toThrow('asks again by itself');
  await expect((await ask({ method: 'POST' })).text()).rejects.toThrow('what you have typed stays');
});

test('an answer that has no body by its status is passed on as it is', async () => {
  const answer = new Response(null, { status: 204 });
  // (a browser gives it a stream that ends at once)
  Object.defineProperty(answer, 'body', { value: new Response('').body });
  const ask = asking(async () => answer, ways());
  expect(await ask({ method: 'DELETE' })).toBe(answer);
});

test('what is no answer of the scheduler may be silent in its middle', async () => {
  const late = begun(
    controller => void setTimeout(() => (controller.enqueue(new Uint8Array([93])), controller.close()), 50)
  );
  const ask = asking(late, ways(), 10);
  expect(await (await ask({ path: ['webhdfs', 'v1', 'a'] })).text()).toBe('[{"name":]');
});

test('what nobody wants any more is not called a cut connection', async () => {
  const asked = new AbortController();
  const ask = asking(() => Promise.reject(new DOMException('', 'AbortError')), ways());
  asked.abort();
  await expect(ask({ signal: asked.signal })).rejects.toThrow(DOMException);
});

test('the first answer after that is told to all, once', async () => {
  const noted = ways();
  const answer = vi.fn<() => Promise<Response>>(cut);
  const ask = asking(answer, noted);
  await ask().catch(() => undefined);
  answer.mockImplementation(async () => new Response('[]'));
  await ask();
  await ask();
  expect(noted.answers).toBe(1);
});

test('an expired login is shown until there is another', async () => {
  const noted = ways(false);
  const answer = vi.fn(async () => new Response('', { status: 403 }));
  const ask = asking(answer, noted);
  const refused = await ask();
  expect(refused.status).toBe(403);
  expect(((await refused.json()) as { message: string }).message).toContain('Your login has expired.');
  noted.loggedIn = true;
  answer.mockImplementation(async () => new Response('[]'));
  await ask();
  expect(noted.shown).toEqual([expect.stringContaining('Your login has expired.'), null]);
  expect(noted.answers).toBe(1);
});

test('what the person may not do is passed on as it is', async () => {
  const noted = ways();
  const refused = await asking(async () => new Response('no', { status: 403 }), noted)();
  expect(await refused.text()).toBe('no');
  expect(noted.shown).toEqual([]);
});
