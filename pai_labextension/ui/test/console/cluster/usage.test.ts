import { describe, expect, it } from 'vitest';

import { chart, meanUse, nearest } from '../../../console/cluster/usage';
import { IUsage, untilNow, UsageModel } from '../../../console/data/cluster';

const MINUTE = 60_000;
const NOON = 1_763_690_400_000;

function usage(...samples: [minutes: number, used: number, total: number][]): IUsage {
  return {
    interval: MINUTE,
    samples: samples.map(([minutes, used, total]) => ({ time: NOON + minutes * MINUTE, used, total }))
  };
}

describe('the use of the GPUs over the day', () => {
  it('is asked for from the newest that is known, and a day of it is kept', async () => {
    const answers = [
      [
        [NOON, 1, 4],
        [NOON + MINUTE, 2, 4]
      ],
      [[NOON + 24 * 60 * MINUTE, 3, 4]]
    ];
    const asked: number[] = [];
    const model = new UsageModel({
      clusterUsage: async after => {
        asked.push(after);
        return { interval: 60, gpus: answers.shift() ?? [] };
      }
    });
    await model.refresh();
    expect(model.answer).toEqual(usage([0, 1, 4], [1, 2, 4]));
    await model.refresh();
    expect(model.answer?.samples.map(({ used }) => used)).toEqual([2, 3]);
    expect(asked).toEqual([0, NOON + MINUTE]);
    model.dispose();
  });

  it('is drawn with the newest at the right and the most at the top', () => {
    const drawn = chart(usage([0, 2, 4], [1, 4, 4]))!;
    expect(drawn.most).toBe(4);
    expect(drawn.areas).toEqual(['M0.9993,1 L0.9993,0.5 1,0 L1,1 Z']);
    expect(drawn.totals).toEqual(['M0.9993,0 1,0']);
    expect(drawn.point).toBe('M1,0 h0');
  });

  it('ends with what is taken now, of all types together', () => {
    const types = [
      { used: 1, total: 4 },
      { used: 1, total: 4 }
    ];
    const before = usage([-1440, 8, 8], [-30, 0, 8]);
    expect(untilNow(before, types, NOON)).toEqual(usage([-30, 0, 8], [0, 2, 8]));
    expect(untilNow(usage(), types, NOON)).toEqual(usage([0, 2, 8]));
  });

  it('ends no earlier than with its last sample, whatever the clock of the browser says', () => {
    const types = [{ used: 2, total: 8 }];
    expect(untilNow(usage([0, 0, 8]), types, NOON - 5 * MINUTE)).toEqual(usage([0, 0, 8], [0, 2, 8]));
  });

  it('has a gap where the scheduler did not run', () => {
    expect(chart(usage([0, 1, 4], [1, 1, 4], [30, 2, 4], [31, 2, 4]))!.areas).toHaveLength(2);
  });

  it('is not drawn where there are no GPUs, or nothing is known', () => {
    expect(chart(usage())).toBeNull();
    expect(chart(usage([0, 0, 0]))).toBeNull();
  });

  it('is told of a place, and on average', () => {
    const { samples } = usage([-1440, 0, 4], [-720, 4, 4], [0, 2, 4]);
    expect(nearest(samples, 0.49)!.used).toBe(4);
    expect(nearest(samples, 1)!.used).toBe(2);
    expect(nearest([], 1)).toBeUndefined();
    expect(meanUse(samples)).toBe(50);
    expect(meanUse([])).toBe(0);
  });
});
