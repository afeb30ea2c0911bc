import { describe, expect, it } from 'vitest';

import { arrange, PLAIN } from '../../lab/sidebar/arrangement';
import { job } from '../notebookServer';

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
