import { describe, expect, it } from 'vitest';

import { allOrNone, extended, ISelection, isWhole, NOTHING, toggled } from '../../lab/sidebar/selection';

const rows = ['a', 'b', 'c', 'd'];
const chosen = (selection: ISelection) => [...selection.chosen].sort();

describe('choosing rows', () => {
  it('takes one and gives it up again', () => {
    const one = toggled(NOTHING, 'b');
    expect(chosen(one)).toEqual(['b']);
    expect(chosen(toggled(one, 'b'))).toEqual([]);
    expect(chosen(NOTHING)).toEqual([]);
  });

  it('takes all between two, in either direction, besides what is chosen', () => {
    expect(chosen(extended(toggled(NOTHING, 'b'), rows, 'd'))).toEqual(['b', 'c', 'd']);
    expect(chosen(extended(toggled(toggled(NOTHING, 'a'), 'd'), rows, 'c'))).toEqual(['a', 'c', 'd']);
  });

  it('takes one alone where no range has begun, or its beginning is not listed any more', () => {
    expect(chosen(extended(NOTHING, rows, 'c'))).toEqual(['c']);
    expect(chosen(extended({ chosen: new Set(), anchor: 'gone' }, rows, 'c'))).toEqual(['c']);
  });

  it('takes all, and nothing where all are chosen', () => {
    const all = allOrNone(toggled(NOTHING, 'a'), rows);
    expect(isWhole(all, rows)).toBe(true);
    expect(chosen(allOrNone(all, rows))).toEqual([]);
    expect(isWhole(NOTHING, [])).toBe(false);
  });
});
