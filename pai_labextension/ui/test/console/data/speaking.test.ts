import { expect, test, vi } from 'vitest';

import { ISpeaking, speaking } from '../../../console/data/speaking';
import { trans } from '../../notebookServer';

const JOBS = 'http://localhost/user/carol/pai/api/v1/jobs';

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

const cut = () => Promise.reject(new TypeError('Failed to fetch'));

test('a cut connection is said in a sentence, by what was asked', async () => {
  const fetch = speaking(cut, ways(), trans);
  await expect(fetch(JOBS)).rejects.toThrow('asks again by itself');
  await expect(fetch(JOBS, { method: 'POST', body: '{}' })).rejects.toThrow('what you have typed stays');
  const validate = JOBS.replace('jobs', 'validate');
  await expect(fetch(validate, { method: 'POST', body: '{}' })).rejects.toThrow('asks again by itself');
});

test('an answer that does not come is not waited for without end', async () => {
  const hangs = (_: unknown, init?: RequestInit) =>
    new Promise<Response>((__, reject) => init!.signal!.addEventListener('abort', () => reject(new Error('aborted'))));
  await expect(speaking(hangs, ways(), trans, 10)(JOBS)).rejects.toThrow('does not answer');
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
  const fetch = speaking(answer, noted, trans, 10);
  await expect((await fetch(JOBS)).text()).rejects.toThrow('asks again by itself');
  answer.mockImplementation(async () => new Response('[]'));
  expect(await (await fetch(JOBS)).text()).toBe('[]');
  expect(noted.answers).toBe(1);
});

test('an answer whose connection is cut in its middle is said in a sentence', async () => {
  const fetch = speaking(
    begun(controller => controller.error(new TypeError('network error'))),
    ways(),
    trans
  );
  await expect((await fetch(JOBS)).text()).rejects.toThrow('asks again by itself');
  await expect((await fetch(JOBS, { method: 'POST', body: '{}' })).text()).rejects.toThrow('what you have typed stays');
});

test('an answer that has no body by its status is passed on as it is', async () => {
  const answer = new Response(null, { status: 204 });
  // (a browser gives it a stream that ends at once)
  Object.defineProperty(answer, 'body', { value: new Response('').body });
  const fetch = speaking(async () => answer, ways(), trans);
  expect(await fetch(JOBS, { method: 'DELETE' })).toBe(answer);
});

test('what is no answer of the scheduler may be silent in its middle', async () => {
  const late = begun(
    controller => void setTimeout(() => (controller.enqueue(new Uint8Array([93])), controller.close()), 50)
  );
  const fetch = speaking(late, ways(), trans, 10);
  expect(await (await fetch('http://localhost/user/carol/pai/webhdfs/v1/a')).text()).toBe('[{"name":]');
});

test('what nobody wants any more is not called a cut connection', async () => {
  const asked = new AbortController();
  const fetch = speaking(() => Promise.reject(new DOMException('', 'AbortError')), ways(), trans);
  asked.abort();
  await expect(fetch(JOBS, { signal: asked.signal })).rejects.toThrow(DOMException);
});

test('the first answer after that is told to all, once', async () => {
  const noted = ways();
  const answer = vi.fn<() => Promise<Response>>(cut);
  const fetch = speaking(answer, noted, trans);
  await fetch(JOBS).catch(() => undefined);
  answer.mockImplementation(async () => new Response('[]'));
  await fetch(JOBS);
  await fetch(JOBS);
  expect(noted.answers).toBe(1);
});

test('an expired login is shown until there is another', async () => {
  const noted = ways(false);
  const answer = vi.fn(async () => new Response('', { status: 403 }));
  const fetch = speaking(answer, noted, trans);
  const refused = await fetch(JOBS);
  expect(refused.status).toBe(403);
  expect(((await refused.json()) as { message: string }).message).toContain('Your login has expired.');
  noted.loggedIn = true;
  answer.mockImplementation(async () => new Response('[]'));
  await fetch(JOBS);
  expect(noted.shown).toEqual([expect.stringContaining('Your login has expired.'), null]);
  expect(noted.answers).toBe(1);
});

test('what the person may not do is passed on as it is', async () => {
  const noted = ways();
  const refused = await speaking(async () => new Response('no', { status: 403 }), noted, trans)(JOBS);
  expect(await refused.text()).toBe('no');
  expect(noted.shown).toEqual([]);
});
