import { expect, it } from 'vitest';

import { fewAtOnce } from '../src/fewAtOnce';

it('does something with all, in their order, and never with more than that at once', async () => {
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const all = fewAtOnce([1, 2, 3], 2, async item => {
    begun.push(item);
    await new Promise<void>(resolve => ends.push(resolve));
  });
  await Promise.resolve();
  expect(begun).toEqual([1, 2]);
  ends[1]!();
  await expect.poll(() => begun).toEqual([1, 2, 3]);
  ends[0]!();
  ends[2]!();
  await all;
});

it('has nothing to do where there is nothing', async () => {
  await expect(fewAtOnce([], 2, () => Promise.reject(new Error('called')))).resolves.toBeUndefined();
});
