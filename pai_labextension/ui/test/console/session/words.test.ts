import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';

import { ISession } from '../../../console/data/client';
import { describeUse, duration, explanation, gigabytes, IUse, leftText } from '../../../console/session/notice';

const trans = nullTranslator.load('pai_labextension');
const USE: IUse = { cpuPercent: 40, memoryMB: 1229, gpuPercent: 79.6, gpuMemoryMB: 10240, gpuMemoryTotalMB: 81920 };
const LIMITS = { cpus: 2, memoryMB: 4096, gpus: 1 };

describe('what the status bar says of this server', () => {
  it('is the use of what it may use', () => {
    expect(describeUse(USE, LIMITS, trans)).toBe('CPU 20 % · 1.2 of 4 GB · GPU 80 % · 10 of 80 GB on the GPU');
    expect(describeUse({ ...USE, gpuMemoryTotalMB: null }, LIMITS, trans)).toContain(' · 10 GB on the GPU');
  });

  it('leaves out what is not known', () => {
    const unknown = { cpuPercent: null, memoryMB: 512, gpuPercent: null, gpuMemoryMB: null, gpuMemoryTotalMB: null };
    expect(describeUse(unknown, {}, trans)).toBe('0.5 GB');
    expect(describeUse(null, LIMITS, trans)).toBe('');
    expect(describeUse(USE, { ...LIMITS, gpus: 0 }, trans)).toBe('CPU 20 % · 1.2 of 4 GB');
  });

  it('has the time left where something ends it', () => {
    expect(leftText(null, trans)).toBe('');
    expect(leftText(125 * 60_000, trans)).toBe('2 h 5 min left');
  });

  it.each([
    [-5, '0 minutes'],
    [60_000, '1 minute'],
    [59 * 60_000, '59 minutes'],
    [47 * 3_600_000, '47 h 0 min'],
    [50 * 3_600_000, '2 d 2 h']
  ])('says %d ms as %s', (ms, text) => {
    expect(duration(ms, trans)).toBe(text);
  });

  it.each([
    [512, '0.5'],
    [4096, '4'],
    [98_304, '96']
  ])('says %d MB as %s GB', (megabytes, text) => {
    expect(gigabytes(megabytes)).toBe(text);
  });

  it('explains itself', () => {
    const session = { why: 'This session is idle.', mayKeep: true } as ISession;
    expect(explanation({ ...USE, gpuPercent: null }, LIMITS, session, 60_000, trans).split('\n')).toEqual([
      'What this notebook server uses of what it may use.',
      'It has 2 CPUs: 100 % is all of them.',
      'Its GPUs do not tell how much they are used.',
      'This session is idle.',
      'It ends in 1 minute unless it is kept.'
    ]);
  });
});
