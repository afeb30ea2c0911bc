import { describe, expect, it } from 'vitest';

import { afterOf, afterText } from '../../../console/editor/text';

describe('the jobs that a job waits for', () => {
  it('are read from a line, each a name or with how it must end', () => {
    expect(afterOf('prepare, fetch:ended ,,')).toEqual(['prepare', { job: 'fetch', on: 'ended' }]);
    expect(afterOf('prepare : soon')).toEqual([{ job: 'prepare', on: 'soon' }]);
    expect(afterOf(' , ')).toBeUndefined();
  });

  it.each([['prepare'], ['prepare, fetch:ended'], ['a.b~c:failed']])('are written as they were read: %s', text => {
    expect(afterText(afterOf(text))).toBe(text);
  });

  it('are shown whatever stands in the JSON', () => {
    expect(afterText([{ job: 'a' }, { job: 'b', on: 3 }, 7])).toBe('a, b:3, 7');
    expect(afterText('prepare')).toBe('prepare');
    expect(afterText(undefined)).toBe('');
  });
});
