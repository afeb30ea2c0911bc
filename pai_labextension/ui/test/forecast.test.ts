import { describe, expect, it } from 'vitest';

import { startsIn } from '../console/data/words';
import { trans } from './notebookServer';

describe('when something that waits starts', () => {
  it('is said as people say it, rounded up', () => {
    expect([20, 7200, 7201, 200_000].map(seconds => startsIn(seconds, trans))).toEqual([
      'It starts in about 1 minute.',
      'It starts in about 120 minutes.',
      'It starts in about 3 hours.',
      'It starts in about 3 days.'
    ]);
  });

  it('is not said where it is not known', () => {
    expect(startsIn(null, trans)).toBe('');
  });
});
