import { describe, expect, it } from 'vitest';

import { Looks, plain, shown } from '../../../console/job/log/ansi';
import { ILine } from '../../../console/job/log/reader';

function line(text: string, changes: Partial<ILine> = {}): ILine {
  return { task: 0, start: 0, end: text.length, time: 0, text, open: false, notice: false, ...changes };
}

describe('a line of output', () => {
  it('is its text where it has nothing of a terminal', () => {
    expect(shown('epoch 1: 王 loss=0.5')).toEqual([{ text: 'epoch 1: 王 loss=0.5', look: {} }]);
    expect(shown('')).toEqual([]);
  });

  it('shows of a progress bar what was written last', () => {
    expect(plain('  0%|     |\r 50%|██   |\r100%|█████|')).toBe('100%|█████|');
    expect(plain('a long text\rshort')).toBe('short' + 'g text');
    expect(plain('a long text\r\x1b[Kshort')).toBe('short');
    expect(plain('abc\b\bX')).toBe('aXc');
  });

  it('has the colours of the terminal, until they are taken back', () => {
    expect(shown('\x1b[1;31merror\x1b[0m: \x1b[94mblue\x1b[39m.')).toEqual([
      { text: 'error', look: { bold: true, fg: 'red' } },
      { text: ': ', look: {} },
      { text: 'blue', look: { fg: 'blue-intense' } },
      { text: '.', look: {} }
    ]);
  });

  it('has colours by number and by their parts', () => {
    const looks = (line: string) => shown(line).map(({ look }) => look);
    expect(looks('\x1b[38;5;9ma')).toEqual([{ fg: 'red-intense' }]);
    expect(looks('\x1b[48;5;196ma')).toEqual([{ bg: 'rgb(255 0 0)' }]);
    expect(looks('\x1b[38;5;232ma')).toEqual([{ fg: 'rgb(8 8 8)' }]);
    expect(looks('\x1b[38;2;1;2;300;4ma')).toEqual([{ fg: 'rgb(1 2 255)', underline: true }]);
  });

  it('does not show what moves the cursor or names a window, nor halves of that', () => {
    expect(plain('\x1b]0;title\x07\x1b[2Aup\x1b[?25l\x00!\x1b[')).toBe('up!');
  });
});

describe('a colour that is not taken back', () => {
  it('goes on in the next lines of that log', () => {
    const lines = [line('\x1b[1;31mTraceback'), line('  File "x"'), line('ValueError\x1b[0m: no'), line('after')];
    const looks = new Looks().of(lines);
    const red = { bold: true, fg: 'red' };
    expect(looks).toEqual([{}, red, red, {}]);
    expect(shown(lines[1]!.text, looks[1])).toEqual([{ text: '  File "x"', look: red }]);
    expect(shown(lines[2]!.text, looks[2])).toEqual([
      { text: 'ValueError', look: red },
      { text: ': no', look: {} }
    ]);
  });

  it('is none of another task’s', () => {
    const lines = [line('\x1b[32mgreen'), line('plain', { task: 1 }), line('still green')];
    expect(new Looks().of(lines)).toEqual([{}, {}, { fg: 'green' }]);
  });

  it('ends where a part was removed', () => {
    const lines = [line('\x1b[32mgreen'), line('[left out]', { notice: true }), line('unknown')];
    expect(new Looks().of(lines)).toEqual([{}, {}, {}]);
  });

  it('is the same object as long as the lines are, so that nothing is drawn anew', () => {
    const looks = new Looks();
    const lines = [line('\x1b[32mgreen'), line('more')];
    const [, before] = looks.of(lines);
    expect(looks.of([...lines, line('later')])[1]).toBe(before);
  });
});
