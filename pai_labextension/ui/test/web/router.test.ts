import { describe, expect, it } from 'vitest';

import { pathOf, Place } from '../../console/host';
import { placeOf } from '../../web/router';

const job = { username: 'alice', name: 'two workers/你好?' };
const PLACES: Place[] = [
  ...(['jobs', 'queue', 'cluster', 'schedules', 'servers', 'admin', 'submit'] as const).map(page => ({ page })),
  { page: 'admin', show: 'nodes' },
  { page: 'job', job },
  { page: 'job', job, tab: 'tasks' },
  { page: 'terminal', job, task: 'worker-0' },
  { page: 'connect', job },
  { page: 'submit', from: { username: 'alice', name: 'bert' } },
  { page: 'storage', path: '' },
  { page: 'storage', path: 'alice/a & b/你好' }
];

describe('an address of the console', () => {
  it.each(PLACES.map(place => [pathOf(place), place]))('%s is the place that it was made of', (address, place) => {
    expect(placeOf(address)).toEqual(place);
  });

  it.each(['', 'nowhere', 'jobs/alice', 'jobs/alice/a/b', 'queue/alice/a', 'terminal'])('%s is none', address => {
    expect(placeOf(address)).toBeNull();
  });
});
