import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { SOURCE } from './sources';

const schemas = join(import.meta.dirname, '..', 'schema');
const catalog = join(import.meta.dirname, '../../locale/zh_CN/LC_MESSAGES/pai_labextension.json');

const LITERAL = String.raw`\s*'((?:[^'\\]|\\.)*)'`;

/** The sentences in whose calls this stands: the first literal of each. */
function handedTo(call: string): string[] {
  return [...SOURCE.matchAll(new RegExp(call, 'g'))].map(match => match[1]!);
}

/** The sentences with a number that decides their form: that for 1. */
const counted = handedTo(String.raw`trans\._n\(${LITERAL},${LITERAL}`);

/** Every sentence that the source hands to the translator. */
const sentences = [...handedTo(String.raw`trans\.__\(${LITERAL}`), ...counted];

/** What the settings editor shows of our settings. */
const ofSettings = readdirSync(schemas).flatMap(name =>
  [...readFileSync(join(schemas, name), 'utf8').matchAll(/"(?:title|description)": "([^"]*)"/g)].map(match => match[1]!)
);

describe('the Chinese translation', () => {
  const entries = JSON.parse(readFileSync(catalog, 'utf8')) as Record<string, string[]>;
  delete entries['']; // the header

  it('has every sentence, and no other', () => {
    expect(sentences.length).toBeGreaterThan(20);
    expect(Object.keys(entries).sort()).toEqual([...new Set([...sentences, ...ofSettings])].sort());
  });

  it('keeps every placeholder', () => {
    const placeholders = (text: string) => text.match(/%\d/g)?.sort() ?? [];
    for (const [english, translations] of Object.entries(entries)) {
      for (const chinese of translations) {
        expect(placeholders(chinese), english).toEqual(placeholders(english));
      }
    }
  });

  it('has two forms where a number decides, without which JupyterLab overlooks it', () => {
    for (const english of [...sentences, ...ofSettings]) {
      expect(entries[english]!.length, english).toBe(counted.includes(english) ? 2 : 1);
    }
  });

  it('hands every sentence over as one literal', () => {
    const calls = SOURCE.match(/trans\.(__|_n)\(/g) ?? [];
    expect(calls.length).toBe(sentences.length);
  });
});
