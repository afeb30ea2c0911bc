import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { SOURCE } from './sources';

const style = join(import.meta.dirname, '..', 'style');

function read(folder: string, kind: RegExp): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => kind.test(name))
    .map(name => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
}

function found(text: string, pattern: RegExp): string[] {
  return [...new Set(Array.from(text.matchAll(pattern), match => match[1]!))].sort();
}

describe('the styles', () => {
  it('are of every class that the source names, and of no other', () => {
    const styled = found(read(style, /\.css$/), /\.(pai-(?:[A-Z]|mod-)[\w-]*)/g);
    expect(styled.length).toBeGreaterThan(20);
    expect(found(SOURCE, /\b(pai-(?:[A-Z]|mod-)[\w-]*)/g)).toEqual(styled);
  });

  it('all reach JupyterLab, but those of pages that are on the web alone', () => {
    const files = readdirSync(style).filter(
      name =>
        name.endsWith('.css') &&
        ![
          ...['access.css', 'admin.css', 'bar.css', 'base.css'],
          ...['index.css', 'table.css', 'web.css', 'widget.css']
        ].includes(name)
    );
    expect(found(readFileSync(join(style, 'base.css'), 'utf8'), /@import url\('\.\/(.*)'\)/g)).toEqual(files.sort());
  });
});
