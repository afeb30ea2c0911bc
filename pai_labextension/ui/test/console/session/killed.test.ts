import { describe, expect, it } from 'vitest';

import { lostMemory, lostSentence } from '../../../console/session/kernels';
import { MemoryInfo } from '../../../console/generated/types.gen';
import { trans } from '../../notebookServer';

/** Asks for the memory, of which each answer is the next. */
function asking(...answers: (MemoryInfo | Error)[]): () => Promise<MemoryInfo> {
  return async () => {
    const answer = answers.shift();
    if (answer === undefined || answer instanceof Error) {
      throw answer ?? new Error('asked too often');
    }
    return answer;
  };
}

describe('a kernel that was ended', () => {
  it('was so for its memory where the server says so', async () => {
    const lost = { limitMB: 256, lost: true };
    expect(await lostMemory(asking(lost))).toEqual(lost);
    expect(await lostMemory(asking({ limitMB: 256, lost: false }))).toBeNull();
  });

  it('is asked about until the server answers, and not for ever', async () => {
    const lost = { limitMB: 256, lost: true };
    expect(await lostMemory(asking(new Error('away'), new Error('away'), lost), 0)).toEqual(lost);
    expect(await lostMemory(asking(), 0)).toBeNull();
  });

  it('is told with the limit, and what to choose', () => {
    expect(lostSentence({ limitMB: 256, lost: true }, trans)).toContain('have 256 MB');
    expect(lostSentence({ limitMB: 256, lost: true }, trans)).toContain('for example 512 MB');
    expect(lostSentence({ limitMB: null, lost: true }, trans)).not.toContain('null');
  });
});
