import { expect, it } from 'vitest';

import { RowHeights } from '../../src/sidebar/rowHeights';
import { job } from '../notebookServer';

it('takes a row to be as high as the last one like it', () => {
  const heights = new RowHeights();
  const before = heights.of(job({ name: 'other', state: 'WAITING' }));
  heights.note(job({ name: 'one', state: 'WAITING' }), 77);
  expect(heights.of(job({ name: 'other', state: 'WAITING' }))).toBe(77);
  expect(heights.of(job({ name: 'ended', state: 'FAILED', appExitCode: 3 }))).toBe(before);
  heights.note(job({ name: 'two', state: 'WAITING' }), 62);
  expect(heights.of(job({ name: 'other', state: 'WAITING' }))).toBe(62);
});
