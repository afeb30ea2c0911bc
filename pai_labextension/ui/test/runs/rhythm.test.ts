import { describe, expect, it } from 'vitest';

import { cronOf, dayName, inWords, IRhythm, NIGHTLY, ownZone, rhythmOf } from '../../console/data/rhythm';
import { trans } from '../notebookServer';

const chosen: [Partial<IRhythm>, string, string][] = [
  [{ kind: 'daily', time: '02:30' }, '30 2 * * *', 'Every day at 02:30'],
  [{ kind: 'weekdays', time: '09:00' }, '0 9 * * 1-5', 'On week days at 09:00'],
  [{ kind: 'weekly', time: '18:05', day: 0 }, '5 18 * * 0', 'Every Sunday at 18:05'],
  [{ kind: 'hourly', time: '00:05' }, '5 * * * *', 'Every hour at minute 5'],
  [{ kind: 'cron', expression: '*/15  8-18 * * * ' }, '*/15 8-18 * * *', '*/15 8-18 * * *']
];

describe('when a file runs again and again', () => {
  it.each(chosen)('is written as cron does, read again, and said in words: %o', (changes, cron, words) => {
    const rhythm = { ...NIGHTLY, ...changes };
    expect(cronOf(rhythm)).toBe(cron);
    expect(rhythmOf(cron).kind).toBe(rhythm.kind);
    expect(cronOf(rhythmOf(cron))).toBe(cron);
    expect(inWords(cron, ownZone(), 'en', trans)).toBe(words);
  });

  it('stays an expression where there are no words for it', () => {
    for (const cron of ['0 2 1 * *', '0 * * * 1', '* * * * *', 'nonsense']) {
      expect(inWords(cron, ownZone(), 'en', trans)).toBe(cron);
    }
  });

  it('names a zone that is not the one of the browser', () => {
    const other = ownZone() === 'Asia/Tokyo' ? 'Asia/Shanghai' : 'Asia/Tokyo';
    expect(inWords('0 * * * *', other, 'en', trans)).toBe(`Every hour at minute 0 (${other})`);
  });

  it('names days in the language of the person', () => {
    expect(dayName(1, 'zh-CN')).toBe('星期一');
  });
});
