// @vitest-environment jsdom
import { Poll } from '@lumino/polling';
import { expect, test } from 'vitest';

import { askAgain, tellAnswered } from '../src/again';

/** Asks, without an answer, and then not for an hour. */
function waiting(): { poll: Poll; asked: () => number } {
  let asked = 0;
  const poll = new Poll({
    auto: false,
    factory: async (): Promise<unknown> => {
      asked += 1;
      throw new Error('away');
    },
    frequency: { interval: 3_600_000, backoff: true, max: 3_600_000 },
    standby: 'never'
  });
  askAgain(poll);
  return { poll, asked: () => asked };
}

test.each([
  ['the server answers', tellAnswered],
  ['the network is back', () => window.dispatchEvent(new Event('online'))],
  ['somebody looks again', () => document.dispatchEvent(new Event('visibilitychange'))]
])('who waits asks at once when %s', async (_, happens) => {
  const { poll, asked } = waiting();
  void poll.refresh();
  await expect.poll(() => poll.state.phase).toBe('rejected');
  happens();
  await expect.poll(asked).toBe(2);
  poll.dispose();
  happens();
  expect(asked()).toBe(2);
});

test('who does not want to know is not asked', async () => {
  const { poll, asked } = waiting();
  await poll.stop();
  tellAnswered();
  await Promise.resolve();
  expect(asked()).toBe(0);
  poll.dispose();
});
