import { describe, expect, it } from 'vitest';

import { digits, MOST_CORNERS, perSecond, Point, scaleTop, thinned, together } from '../../../console/kit/chart';
import { chartsOf } from '../../../console/job/timeline';
import { trans } from '../../notebookServer';

describe('what tasks use over time', () => {
  it('is MB per second where bytes are counted, and never less than none', () => {
    const points: Point[] = [
      [0, 0],
      [1000, 2e6],
      [3000, 6e6],
      [4000, 0]
    ];
    expect(perSecond(points)).toEqual([
      [1000, 2],
      [3000, 2],
      [4000, 0]
    ]);
    expect(perSecond([])).toEqual([]);
  });

  it('is drawn with as many corners as can be seen, and the newest point', () => {
    const points = Array.from({ length: 5000 }, (_, index): Point => [index * 10, 1]);
    expect(thinned(points).length).toBeLessThanOrEqual(MOST_CORNERS);
    expect(thinned(points).at(-1)).toEqual([49_990, 1]);
    expect(thinned(points.slice(0, 5))).toHaveLength(5);
  });

  it('is added up over tasks that are measured at times of their own', () => {
    const even = Array.from({ length: 11 }, (_, index): Point => [index * 1000, 10]);
    const odd = Array.from({ length: 11 }, (_, index): Point => [index * 1000 + 400, 20]);
    const sum = together([even, odd, []], 'sum');
    expect(sum.every(([, value]) => value === 30)).toBe(true);
    expect(together([even, odd], 'mean').at(-1)![1]).toBe(15);
    expect(together([even], 'sum')).toEqual(even);
    expect(together([], 'sum')).toEqual([]);
  });

  it('does not count a task that ended long before', () => {
    const short: Point[] = [
      [0, 5],
      [1000, 5]
    ];
    const long = Array.from({ length: 101 }, (_, index): Point => [index * 1000, 1]);
    const sum = together([short, long], 'sum');
    expect(sum[0]![1]).toBe(6);
    expect(sum.at(-1)![1]).toBe(1);
  });

  it('has a scale that ends at a round number', () => {
    expect([0, 3, 47, 120].map(value => scaleTop(value))).toEqual([1, 4, 50, 200]);
    expect(scaleTop(47, 100)).toBe(100);
    expect([0.123, 4.56, 1234.5].map(value => digits(value, 'en'))).toEqual(['0.12', '4.6', '1,235']);
  });

  it('has a chart for each thing that was measured', () => {
    const series = { cpuPercent: [[0, 50]] as Point[], memoryMB: [], netRxBytes: [[0, 1]] as Point[] };
    const charts = chartsOf([{ series, gpuMemoryMB: null }], trans);
    expect(charts.map(({ title }) => title)).toEqual(['CPU (100 % is one core)']);
  });
});
