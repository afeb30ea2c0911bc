import { describe, expect, it } from 'vitest';

import { arrange, PLAIN } from '../../../console/jobs/selection';
import { allOrNone, extended, ISelection, isWhole, NOTHING, toggled } from '../../../console/kit/selection';
import { job } from '../../notebookServer';

const jobs = [
  job({ name: 'train-10', state: 'WAITING', queuePlace: 2, createdTime: 60 }),
  job({ name: 'train-9', state: 'WAITING', queuePlace: 1, createdTime: 50 }),
  job({ name: 'short', state: 'FAILED', createdTime: 40, completedTime: 41 }),
  job({ name: 'Train-2', state: 'RUNNING', createdTime: 30 }),
  job({ name: 'long', state: 'SUCCEEDED', createdTime: 20, completedTime: 90 }),
  job({ name: 'train-1', state: 'RUNNING', createdTime: 10 })
];
const names = (changes: Partial<typeof PLAIN>) => arrange(jobs, { ...PLAIN, ...changes }).map(({ name }) => name);

describe('the list of jobs', () => {
  it('has what runs first, then what waits by its place, then what ended last', () => {
    expect(names({})).toEqual(['Train-2', 'train-1', 'train-9', 'train-10', 'long', 'short']);
  });

  it('can have the newest first, or the names in order, numbers as people count', () => {
    expect(names({ order: 'newest' })).toEqual(['train-10', 'train-9', 'short', 'Train-2', 'long', 'train-1']);
    expect(names({ order: 'name' })).toEqual(['long', 'short', 'train-1', 'Train-2', 'train-9', 'train-10']);
  });

  it('has only those of a state, whose names have all words', () => {
    expect(names({ state: 'RUNNING' })).toEqual(['Train-2', 'train-1']);
    expect(names({ words: ' TRAIN 1' })).toEqual(['train-1', 'train-10']);
    expect(names({ words: 'train', state: 'FAILED' })).toEqual([]);
  });

  it('leaves the jobs it was given in their order', () => {
    const before = [...jobs];
    names({ order: 'name' });
    expect(jobs).toEqual(before);
  });
});

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
