import { describe, expect, it } from 'vitest';

import {
  encoded,
  fullUri,
  isPart,
  join,
  nameOf,
  numbered,
  parentOf,
  partName,
  variableUri
} from '../../../console/storage/paths';

describe('a path', () => {
  it('is put together and taken apart, whatever slashes it has', () => {
    expect(join('/alice/', 'a//b', 'c/')).toBe('/alice/a/b/c');
    expect(join('')).toBe('/');
    expect([parentOf('/alice/a'), parentOf('/alice'), parentOf('/')]).toEqual(['/alice', '/', '/']);
    expect([nameOf('/alice/a'), nameOf('/')]).toEqual(['a', '']);
  });

  it('is encoded part by part', () => {
    expect(encoded('/alice/数 1/a?b#c%')).toBe('/alice/%E6%95%B0%201/a%3Fb%23c%25');
  });

  it('is written as jobs and people name it', () => {
    expect(variableUri('/alice/x y')).toBe('$PAI_DEFAULT_FS_URI/alice/x%20y');
    expect(fullUri('/alice/x', 'http://pai:8000/services/pai/')).toBe('http://pai:8000/services/pai/alice/x');
    expect([variableUri('/'), fullUri('/', 'hdfs://name:9870')]).toEqual(['$PAI_DEFAULT_FS_URI', 'hdfs://name:9870']);
  });
});

describe('a name', () => {
  it('gets a number before its ending', () => {
    expect(numbered('a.txt', 2, false)).toBe('a-2.txt');
    expect(numbered('.bashrc', 1, false)).toBe('.bashrc-1');
    expect(numbered('v1.0', 1, true)).toBe('v1.0-1');
  });

  it('of what is not whole yet is the one that the command line gives', () => {
    // as pai_scheduler.client.storage.transfer.part_name has it
    expect(partName('model.bin', 1000, 1_700_000_000_123)).toBe('.model.bin.726adb82.part');
    expect(partName('数'.repeat(80), 5, 6)).toBe(
      '.数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数数.9cc0a944.part'
    );
  });

  it('of what is not whole yet is told from others', () => {
    expect(isPart(partName('a', 1, 2))).toBe(true);
    expect(['a.part', '.a.part', '.a.0123456.part', '.a.01234567.parts'].filter(isPart)).toEqual([]);
  });
});
