import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

const source = join(import.meta.dirname, '..', 'src');
const catalog = join(import.meta.dirname, '../../locale/zh_CN/LC_MESSAGES/pai_labextension.json');

function files(): string[] {
  return readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(name => /\.tsx?$/.test(name));
}

/** Every sentence that the source hands to the translator. */
function sentences(): string[] {
  const text = files().map(name => readFileSync(join(source, name), 'utf8')).join('\n');
  return [...text.matchAll(/trans\.__\(\s*'((?:[^'\\]|\\.)*)'/g)].map(match => match[1]!);
}

describe('the Chinese translation', () => {
  const { '': _header, ...entries } = JSON.parse(readFileSync(catalog, 'utf8')) as Record<string, string[]>;

  it('has every sentence, and no other', () => {
    expect(sentences().length).toBeGreaterThan(20);
    expect(Object.keys(entries).sort()).toEqual([...new Set(sentences())].sort());
  });

  it('keeps every placeholder', () => {
    const placeholders = (text: string) => text.match(/%\d/g)?.sort() ?? [];
    for (const [english, [chinese]] of Object.entries(entries)) {
      expect(placeholders(chinese!), english).toEqual(placeholders(english));
    }
  });

  it('hands every sentence over as one literal', () => {
    const calls = files().flatMap(name => readFileSync(join(source, name), 'utf8').match(/trans\.__\(/g) ?? []);
    expect(calls.length).toBe(sentences().length);
  });
});
