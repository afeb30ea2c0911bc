import { describe, expect, it } from 'vitest';

import { count, isActive, isOpen, key, waiting } from '../console/data/jobs';
import { job } from './notebookServer';

describe('jobs', () => {
  const jobs = [
    job({ name: 'c', state: 'WAITING', createdTime: 30 }),
    job({ name: 'b', state: 'RUNNING', createdTime: 20 }),
    job({ name: 'a', state: 'WAITING', createdTime: 10 }),
    job({ name: 'z', state: 'FAILED', createdTime: 5 })
  ];

  it('are counted by state', () => {
    expect(count(jobs, 'WAITING')).toBe(2);
    expect(count(jobs, 'STOPPED')).toBe(0);
  });

  it('wait in the order in which they came', () => {
    expect(waiting(jobs).map(each => each.name)).toEqual(['a', 'c']);
  });

  it('are active until they are over', () => {
    expect(jobs.filter(isActive).map(each => each.name)).toEqual(['c', 'b', 'a']);
  });

  it('are open while their tasks run and are not being stopped', () => {
    expect(jobs.filter(isOpen).map(each => each.name)).toEqual(['b']);
    expect(isOpen(job({ state: 'RUNNING', subState: 'ENDING' }))).toBe(false);
  });

  it('of two users with one name are told apart', () => {
    expect(key(job({ username: 'bob' }))).not.toBe(key(job()));
  });
});
