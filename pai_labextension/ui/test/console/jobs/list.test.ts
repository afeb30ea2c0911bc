import { expect, it } from 'vitest';

import { RowHeights } from '../../../console/jobs/list';
import { job } from '../../notebookServer';

it('takes a row to be as high as the last one like it', () => {
  const heights = new RowHeights();
  const said = { reason: undefined, ports: 0 };
  const before = heights.of(job({ name: 'other', state: 'WAITING' }), said);
  heights.note(job({ name: 'one', state: 'WAITING' }), said, 77);
  expect(heights.of(job({ name: 'other', state: 'WAITING' }), said)).toBe(77);
  expect(heights.of(job({ name: 'ended', state: 'FAILED', appExitCode: 3 }), said)).toBe(before);
  heights.note(job({ name: 'two', state: 'WAITING' }), said, 62);
  expect(heights.of(job({ name: 'other', state: 'WAITING' }), said)).toBe(62);
});

it('takes a row to be as high as others that say as much', () => {
  const heights = new RowHeights();
  const waiting = job({ name: 'one', state: 'WAITING' });
  const plain = heights.of(waiting, { reason: undefined, ports: 0 });
  heights.note(waiting, { reason: 'No machine is free.', ports: 0 }, 90);
  expect(heights.of(waiting, { reason: undefined, ports: 0 })).toBe(plain);
  expect(heights.of(waiting, { reason: 'No machine is free.', ports: 0 })).toBe(90);
  const running = job({ name: 'two', state: 'RUNNING' });
  heights.note(running, { reason: undefined, ports: 2 }, 100);
  expect(heights.of(running, { reason: undefined, ports: 0 })).toBe(plain);
});
