import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { TranslationBundle } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';

import { DEFAULTS, isWanted } from '../../console/jobs/ended';
import { read, translated } from '../../lab/noticeSettings';
import { job } from '../notebookServer';

const schema = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../schema/ended-jobs.json'), 'utf8')
) as ISettingRegistry.ISchema;

const MINUTE = 60_000;
const short = job({ state: 'SUCCEEDED', createdTime: 0, completedTime: 10 * MINUTE });
const long = job({ state: 'SUCCEEDED', createdTime: 0, completedTime: 10 * MINUTE + 1 });
const failed = job({ state: 'FAILED', createdTime: 0, completedTime: 1 });
const stopped = job({ state: 'STOPPED', createdTime: 0, completedTime: 1 });

describe('what one is told of', () => {
  it.each([
    ['all', [true, true, true, true]],
    ['long', [false, true, false, false]],
    ['failed', [false, false, true, true]],
    ['none', [false, false, false, false]]
  ] as const)('is, where %s is chosen, as its title says', (tell, told) => {
    expect([short, long, failed, stopped].map(each => isWanted({ ...DEFAULTS, tell }, each))).toEqual(told);
  });

  it('is by default what the schema says', () => {
    const defaults = Object.entries(schema.properties!).map(([name, property]) => [name, property.default]);
    expect(DEFAULTS).toEqual(Object.fromEntries(defaults));
    expect(read(null)).toEqual(DEFAULTS);
  });
});

describe('the settings', () => {
  it('are shown in the language of the person, choices included', () => {
    const loud = { gettext: (text: string) => text.toUpperCase() } as unknown as TranslationBundle;
    const shown = translated(schema, loud);
    expect(shown.title).toBe('PAI: ENDED JOBS');
    const { tell } = shown.properties!;
    expect(tell!.title).toBe('TELL ME OF');
    expect(tell!.oneOf).toContainEqual({ const: 'none', title: 'NO JOB' });
    expect(tell!.default).toBe('all');
  });
});
