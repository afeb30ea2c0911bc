import { describe, expect, it } from 'vitest';

import { MemoryWatch, sentence } from '../../src/ended/killed';
import { MemoryInfo } from '../../src/generated/types.gen';
import { trans } from '../notebookServer';

/** Asks for the memory, of which each answer is the next. */
function watch(...answers: (MemoryInfo | Error)[]): MemoryWatch {
  return new MemoryWatch(async () => {
    const answer = answers.shift();
    if (answer === undefined || answer instanceof Error) {
      throw answer ?? new Error('asked too often');
    }
    return answer;
  });
}

describe('a kernel that was ended', () => {
  it('was so for its memory where that has cost one more process', async () => {
    const more = { limitMB: 256, killed: 3 };
    const watched = watch({ limitMB: 256, killed: 2 }, more, more);
    expect(await watched.lost()).toEqual(more);
    expect(await watched.lost()).toBeNull();
  });

  it('was not where that is not known', async () => {
    expect(await watch({ limitMB: null, killed: null }, { limitMB: null, killed: null }).lost()).toBeNull();
    expect(await watch(new Error('away'), { limitMB: 1, killed: 1 }).lost()).toBeNull();
    expect(await watch({ limitMB: 1, killed: 1 }, new Error('away')).lost()).toBeNull();
  });

  it('is told with the limit, and what to choose', () => {
    expect(sentence({ limitMB: 256, killed: 1 }, trans)).toContain('have 256 MB');
    expect(sentence({ limitMB: 256, killed: 1 }, trans)).toContain('for example 512 MB');
    expect(sentence({ limitMB: null, killed: 1 }, trans)).not.toContain('null');
  });
});
