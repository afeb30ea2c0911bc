// What the front end is written in.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');

/** The folders of the source: what is mounted, and the places where it is. */
const FOLDERS = ['console', 'lab', 'web', 'widget'];

/** The text of each file, by its path. */
export const FILES: ReadonlyMap<string, string> = new Map(
  FOLDERS.flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(name => /\.tsx?$/.test(name))
      .map(name => [join(folder, name), readFileSync(join(root, folder, name), 'utf8')] as const)
  )
);

/** All of it. */
export const SOURCE = [...FILES.values()].join('\n');
