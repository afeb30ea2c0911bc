import { Contents } from '@jupyterlab/services';
import { describe, expect, it } from 'vitest';

import { bytesText, durationText, Speed } from '../../../console/storage/quantities';
import { lastPage, ordered, SHOWN } from '../../../console/storage/browser';

function item(name: string, size = 0, last_modified = '', type = 'file'): Contents.IModel {
  return { name, size, last_modified, type } as Contents.IModel;
}

const names = (items: Contents.IModel[]) => items.map(one => one.name);

describe('the order of what is shown', () => {
  const items = [
    item('file10', 5, '2024-01-02T00:00:00.000Z'),
    item('file2', 9, '2024-01-03T00:00:00.000Z'),
    item('b', 0, '2024-01-01T00:00:00.000Z', 'directory'),
    item('a', 0, '2024-01-04T00:00:00.000Z', 'directory')
  ];

  it('is the one that JupyterLab gives, folders first', () => {
    const by = (key: string, direction: 'ascending' | 'descending') => names(ordered(items, { key, direction }, 'en'));
    expect(by('name', 'ascending')).toEqual(['a', 'b', 'file2', 'file10']);
    expect(by('name', 'descending')).toEqual(['b', 'a', 'file10', 'file2']);
    expect(by('last_modified', 'ascending')).toEqual(['a', 'b', 'file2', 'file10']);
    expect(by('last_modified', 'descending')).toEqual(['b', 'a', 'file10', 'file2']);
    expect(by('file_size', 'ascending')).toEqual(['a', 'b', 'file10', 'file2']);
    expect(by('file_size', 'descending')).toEqual(['a', 'b', 'file2', 'file10']);
  });

  it('has a last part, also where there is nothing', () => {
    expect([0, 1, SHOWN, SHOWN + 1, 10 * SHOWN].map(lastPage)).toEqual([0, 0, 0, 1, 9]);
  });
});

describe('quantities', () => {
  it('are written as people read them', () => {
    expect([0, 1023, 1024, 1.5 * 2 ** 20, 200 * 2 ** 30].map(bytesText)).toEqual([
      '0 B',
      '1023 B',
      '1.0 KiB',
      '1.5 MiB',
      '200 GiB'
    ]);
    expect([0, 7.4, 150, 3909].map(durationText)).toEqual(['0:00', '0:07', '2:30', '1:05:09']);
  });

  it('have a speed, of the last seconds only', () => {
    const speed = new Speed(1000);
    expect(speed.value).toBe(0);
    speed.note(0, 0);
    speed.note(1000, 500);
    expect(speed.value).toBe(500);
    speed.note(2500, 500);
    speed.note(3500, 1500);
    expect(speed.value).toBe(1000);
    speed.note(4000, 100); // a new try
    expect(speed.value).toBe(0);
  });
});
