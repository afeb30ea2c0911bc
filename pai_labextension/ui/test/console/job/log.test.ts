import { describe, expect, it } from 'vitest';

import { ILine, LogReader, patternOf } from '../../../console/job/log/reader';
import { LogWindow, merged } from '../../../console/job/log/window';
import { PlayedLog } from './playedLog';

/** Numbered lines, some with characters of several bytes. */
function numbered(count: number, word = 'line'): string {
  return Array.from({ length: count }, (_, number) => `${word} ${number} 行\n`).join('');
}

const texts = (window: LogWindow) => window.lines.map(({ text }) => text);

describe('a log that is longer than what is shown of it', () => {
  const COUNT = 6_000;
  const text = numbered(COUNT);

  it('is shown from its end, and gives every line once on the way to its beginning and back', async () => {
    const log = new PlayedLog(text);
    const window = new LogWindow([new LogReader(log, 0)]);
    await window.toEnd();
    expect(texts(window).at(-1)).toBe(`line ${COUNT - 1} 行`);
    expect(window.atEnd).toBe(true);
    let expected = COUNT - window.lines.length;
    while (!window.atStart) {
      const before = window.lines[0]!;
      await window.before();
      const added = window.lines.includes(before) ? window.lines.indexOf(before) : window.lines.length;
      expected -= added;
      expect(texts(window)[0]).toBe(`line ${expected} 行`);
      expect(window.lines.length).toBeLessThanOrEqual(1500);
    }
    expect(window.atEnd).toBe(false);
    while (!window.atEnd) {
      const last = Number(texts(window).at(-1)!.split(' ')[1]);
      await window.after();
      const place = texts(window).indexOf(`line ${last} 行`);
      expect(texts(window)[place + 1] ?? 'none').toBe(
        window.atEnd && last === COUNT - 1 ? 'none' : `line ${last + 1} 行`
      );
      expect(window.lines.length).toBeLessThanOrEqual(1500);
    }
    expect(texts(window).at(-1)).toBe(`line ${COUNT - 1} 行`);
  });

  it('is shown by one question for what is shown: its end, a time, a place that a search has found', async () => {
    const log = new PlayedLog(text);
    const window = new LogWindow([new LogReader(log, 0)]);
    await window.toEnd();
    expect(log.questions).toBe(1);
    await window.toTime(3_456_000);
    expect(log.questions).toBe(2);
    expect(texts(window)[0]).toBe('line 3456 行');
    const place = new TextEncoder().encode(numbered(2_000)).length;
    const line = await window.toLine(0, place + 4);
    expect(log.questions).toBe(3);
    expect(line?.text).toBe('line 2000 行');
    // what is before it is there, too, without being asked for
    expect(texts(window)[0]).toBe('line 1900 行');
    await window.before();
    await window.after();
    const numbers = texts(window).map(one => Number(one.split(' ')[1]));
    expect(numbers).toEqual(numbers.map((_, index) => numbers[0]! + index));
    expect(numbers[0]).toBeLessThan(1_900);
  });

  it('is shown at a place within a line that is longer than what is read before it', async () => {
    const log = new PlayedLog(`${'long '.repeat(20_000)}\n`.repeat(3));
    const window = new LogWindow([new LogReader(log, 0)]);
    const line = await window.toLine(0, 150_000);
    expect(line!.start).toBeLessThanOrEqual(150_000);
    expect(line!.end).toBeGreaterThan(150_000);
  });

  it('is found at a place and at a time, without being read', async () => {
    const log = new PlayedLog(text);
    const window = new LogWindow([new LogReader(log, 0)]);
    await window.toOffset(log.size / 2);
    expect(texts(window)[0]).toMatch(/^line \d+ 行$/);
    log.asked = 0;
    await window.toTime(3_456_000);
    expect(texts(window)[0]).toBe('line 3456 行');
    expect(log.asked).toBeLessThan(400_000);
    await window.toTime(1e12);
    expect(texts(window)).toEqual([]);
    await window.before();
    expect(texts(window).at(-1)).toBe(`line ${COUNT - 1} 行`);
  });

  it('goes on as it is written, characters that come in halves too', async () => {
    const log = new PlayedLog('one\ntw');
    const window = new LogWindow([new LogReader(log, 0)]);
    await window.toEnd();
    expect(texts(window)).toEqual(['one', 'tw']);
    log.write('o\nthree');
    expect(await window.after()).toBe(true);
    expect(texts(window)).toEqual(['one', 'two', 'three']);
    expect(await window.after()).toBe(false);
    log.write('\n');
    await window.after();
    log.write('four\n');
    await window.after();
    expect(texts(window)).toEqual(['one', 'two', 'three', 'four']);
  });

  it('keeps of a line that is written anew for hours what is seen', async () => {
    const log = new PlayedLog('');
    const window = new LogWindow([new LogReader(log, 0)]);
    await window.toEnd();
    for (let step = 0; step < 30; step += 1) {
      log.write(Array.from({ length: 500 }, (_, part) => `\r${step * 500 + part} of 15000`).join(''));
      while (await window.after()) {
        // until the end
      }
    }
    expect(window.lines.length).toBe(1);
    expect(texts(window)[0]!.length).toBeLessThanOrEqual(64 * 1024);
    expect(texts(window)[0]!.endsWith('14999 of 15000')).toBe(true);
  });

  it('says where a part was removed, forwards and backwards', async () => {
    const log = new PlayedLog(text);
    const place = (number: number) => new TextEncoder().encode(numbered(number)).length;
    log.gap = [place(100), place(5_900)];
    const window = new LogWindow([new LogReader(log, 0)]);
    const expected = [...numbered(100).trimEnd().split('\n'), '[left out]', ...text.trimEnd().split('\n').slice(5_900)];
    await window.toStart();
    while (!window.atEnd) {
      await window.after();
    }
    expect(texts(window)).toEqual(expected);
    await window.toEnd();
    while (!window.atStart) {
      await window.before();
    }
    expect(texts(window)).toEqual(expected);
    await window.toTime(3_000_000);
    expect(texts(window)[0]).toMatch(/left out|line 5900/);
  });

  it('is searched as a whole, forwards and backwards, until one has enough of it', async () => {
    const reader = new LogReader(new PlayedLog(text), 0);
    const go = () => true;
    const place = new TextEncoder().encode(numbered(5_500)).length;
    expect(await reader.find(patternOf('LINE 5500 行'), 0, false, go)).toBe(place);
    expect(await reader.find(patternOf('line 5500 行'), place + 1, false, go)).toBeNull();
    expect(await reader.find(patternOf('line 5500 行'), 1e9, true, go)).toBe(place);
    expect(await reader.find(patternOf('line 5500 行'), place, true, go)).toBeNull();
    expect(await reader.find(patternOf('l.ne'), 0, false, go)).toBeNull();
    expect(await reader.find(patternOf('line 5500'), 0, false, () => false)).toBeNull();
  });

  it('is searched in pieces, of which none hides what begins in it and ends in the next', async () => {
    const word = 'needle';
    for (const place of [0, 256 * 1024 - 3, 256 * 1024, 1024 * 1024 - 1, 5 * 1024 * 1024 - 2]) {
      const log = new PlayedLog(`${'.'.repeat(place)}${word}${'.'.repeat(300_000)}`);
      const reader = new LogReader(log, 0);
      expect(await reader.find(patternOf(word), 0, false, () => true)).toBe(place);
      expect(await reader.find(patternOf(word), log.size, true, () => true)).toBe(place);
      expect(await reader.find(patternOf(word), place + 1, false, () => true)).toBeNull();
    }
  });

  it('reads little to find what is near', async () => {
    const log = new PlayedLog(numbered(500_000));
    const reader = new LogReader(log, 0);
    await reader.find(patternOf('line 30000 行'), 0, false, () => true);
    expect(log.questions).toBe(2); // one of them is how long it is
    expect(log.asked).toBeLessThan(1_100_000);
  });
});

describe('the logs of several tasks', () => {
  /** Three tasks that write in turn; the third one began late. */
  function window(count: number): LogWindow {
    const logs = [0, 1, 2].map(
      task => new PlayedLog(numbered(count, `task${task}`), line => (line + (task === 2 ? 50 : 0)) * 3000 + task * 1000)
    );
    return new LogWindow(logs.map((log, task) => new LogReader(log, task)));
  }

  const times = (lines: readonly ILine[]) => lines.map(({ time }) => time);

  it('are in order of time, and none has a gap, on the way to the beginning', async () => {
    const shown = window(900);
    await shown.toEnd();
    while (!shown.atStart) {
      await shown.before();
      expect(times(shown.lines)).toEqual([...times(shown.lines)].sort((a, b) => a - b));
      for (const task of [0, 1, 2]) {
        const numbers = shown.lines.filter(line => line.task === task).map(({ text }) => Number(text.split(' ')[1]));
        expect(numbers).toEqual(numbers.map((_, index) => numbers[0]! + index));
      }
    }
    expect(texts(shown).slice(0, 3)).toEqual(['task0 0 行', 'task1 0 行', 'task0 1 行']);
  });

  it('are in order of time on the way to the end', async () => {
    const shown = window(900);
    await shown.toStart();
    let seen = 0;
    while (!shown.atEnd) {
      await shown.after();
      seen += 1;
      expect(times(shown.lines)).toEqual([...times(shown.lines)].sort((a, b) => a - b));
    }
    expect(seen).toBeGreaterThan(3);
    expect(texts(shown).at(-1)).toBe('task2 899 行');
  });

  it('keep their own order where their times do not', () => {
    const line = (task: number, time: number, text: string): ILine => ({
      ...{ task, time, text, start: 0, end: 0 },
      open: false,
      notice: false
    });
    const found = merged([
      [line(0, 10, 'a'), line(0, 5, 'b'), line(0, NaN, 'c')],
      [line(1, 7, 'd'), line(1, 20, 'e')]
    ]);
    expect(found.map(({ text }) => text).join('')).toBe('dabce');
  });
});
