import { describe, expect, it } from 'vitest';

import { maintenanceOf, maintenanceText } from '../../../console/data/cluster';
import { localText } from '../../../console/kit/time';
import { trans } from '../../notebookServer';

const window = (name: string, begin: number) => ({
  name,
  nodes: ['*'],
  begin,
  end: begin + 1_000_000,
  reason: 'new disks',
  by: 'root'
});

describe('maintenance', () => {
  it('is told once with all its machines, what begins first before the others', () => {
    const [early, late] = [window('early', 1), window('late', 2)];
    const found = maintenanceOf([
      { name: 'a', closed: null, maintenance: [late] },
      { name: 'b', closed: { by: 'root', reason: '', since: 1, until: early.end }, maintenance: [early, late] },
      { name: 'c', closed: null }
    ]);
    expect(found.map(({ name, machines, begun }) => [name, machines, begun])).toEqual([
      ['early', ['b'], true],
      ['late', ['a', 'b'], false]
    ]);
  });

  it('is told with its times in the language of the page, and as under way once it has begun', () => {
    const one = { ...window('disks', 5_000_000), machines: ['a', 'b'], begun: false };
    for (const language of ['en', 'zh-CN']) {
      const [begin, end] = [one.begin, one.end].map(time => localText(new Date(time), language, 'minutes'));
      expect(maintenanceText(one, trans, language)).toBe(`Maintenance from ${begin} to ${end}: a, b (new disks)`);
      expect(maintenanceText({ ...one, begun: true }, trans, language)).toBe(
        `In maintenance until ${end}: a, b (new disks)`
      );
    }
  });

  it('names some of many machines', () => {
    const machines = ['1', '2', '3', '4', '5', '6', '7'];
    expect(maintenanceText({ ...window('all', 0), machines, begun: false }, trans, 'en')).toContain(
      '1, 2, 3, 4, 5 and 2 more'
    );
  });
});
