import { describe, expect, it } from 'vitest';

import { plain, shown } from '../../lab/job/log/terminal';

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
