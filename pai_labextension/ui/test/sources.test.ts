import { describe, expect, it } from 'vitest';

import { monitorCell } from '../src/sources';

describe('the cell that shows a job', () => {
  it('is Python, whatever the names are made of', () => {
    expect(monitorCell('a', '王 "小"\\明')).toBe(
      'from pai_labextension import JobMonitor\n\nJobMonitor("a", "王 \\"小\\"\\\\明")'
    );
  });
});
