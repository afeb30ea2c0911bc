import { describe, expect, it } from 'vitest';

import { ILine } from '../../lab/job/log/lines';
import { Looks } from '../../lab/job/log/looks';
import { shown } from '../../lab/job/log/terminal';

function line(text: string, changes: Partial<ILine> = {}): ILine {
  return { task: 0, start: 0, end: text.length, time: 0, text, open: false, notice: false, ...changes };
}

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
