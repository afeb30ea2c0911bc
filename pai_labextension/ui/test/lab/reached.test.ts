import { expect, test } from 'vitest';

import { reachingServer } from '../../lab/hub';

function answering(status: number, headers: Record<string, string> = {}) {
  return reachingServer(() => Promise.resolve(new Response('', { status, headers })));
}

test('what the proxy does not know is as far away as without a network', async () => {
  await expect(answering(404, { 'Content-Type': 'text/html' })('/user/carol/api/contents')).rejects.toThrow(TypeError);
});

test('what the server or the Hub does not have is not there', async () => {
  const answer = await answering(404, { 'X-JupyterHub-Version': '5.4.2' })('/user/carol/api/contents/gone');
  expect(answer.status).toBe(404);
});

test.each([200, 403, 500, 503])('an answer %i is passed on, whoever gave it', async status => {
  expect((await answering(status)('/user/carol/api/contents')).status).toBe(status);
});

test('the request is passed on as it is', async () => {
  const seen: unknown[] = [];
  const fetch = reachingServer((...request) => {
    seen.push(...request);
    return Promise.resolve(new Response(''));
  });
  await fetch('/user/carol/api/status', { method: 'HEAD' });
  expect(seen).toEqual(['/user/carol/api/status', { method: 'HEAD' }]);
});
