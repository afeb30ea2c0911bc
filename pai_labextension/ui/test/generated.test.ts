import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');

function contents(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map(name => [name, readFileSync(join(folder, name), 'utf8')]));
}

describe('what is made from the declared answers', () => {
  it('is what `npm run generate` makes of it now', () => {
    const folder = mkdtempSync(join(tmpdir(), 'generated-'));
    try {
      execFileSync(process.execPath, [join(root, 'generate', 'generate.mjs'), folder], { stdio: 'pipe' });
      expect(contents(join(root, 'console', 'generated'))).toEqual(contents(folder));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 60_000);
});
