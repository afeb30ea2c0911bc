// Paths of the cluster's storage: taken apart, put together, written as people and jobs write them.

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/** Bytes of the longest name of a file, as everywhere in the storage. */
const LONGEST_NAME = 255;

/** Take a path apart; doubled slashes and one at an end count for nothing. */
export function partsOf(path: string): string[] {
  return path.split('/').filter(part => part !== '');
}

/** The path of what is called `name` in a folder. */
export function join(folder: string, ...names: string[]): string {
  return '/' + [...partsOf(folder), ...names.flatMap(partsOf)].join('/');
}

/** The folder that something is in; the root's is the root. */
export function parentOf(path: string): string {
  return '/' + partsOf(path).slice(0, -1).join('/');
}

/** The last part of a path; empty for the root. */
export function nameOf(path: string): string {
  return partsOf(path).at(-1) ?? '';
}

/** A path as it stands in a URL. */
export function encoded(path: string): string {
  return '/' + partsOf(path).map(encodeURIComponent).join('/');
}

/** A path as a job's file names it, whatever the storage is called. */
export function variableUri(path: string): string {
  return `$PAI_DEFAULT_FS_URI${encoded(path)}`.replace(/\/$/, '');
}

/** A path as a whole URI; `root` is what the cluster calls its storage. */
export function fullUri(path: string, root: string): string {
  return `${root.replace(/\/+$/, '')}${encoded(path)}`.replace(/\/$/, '');
}

/** `a.txt` and 2 give `a-2.txt`; of a folder, or a name that only begins with a dot, nothing counts as ending. */
export function numbered(name: string, number: number, isFolder: boolean): string {
  const dot = isFolder ? -1 : name.lastIndexOf('.');
  return dot > 0 ? `${name.slice(0, dot)}-${number}${name.slice(dot)}` : `${name}-${number}`;
}

/**
 * Name what is there of a file before it is whole. The command line names it the same, so that each goes on
 * with what the other began.
 *
 * @param length - of the local file, in bytes
 * @param modified - when it was last changed, in ms since the epoch
 */
export function partName(name: string, length: number, modified: number): string {
  const fingerprint = hash(`${length}:${modified}`).slice(0, 8);
  const room = LONGEST_NAME - '..01234567.part'.length;
  const stem = utf8ToBytes(name).length > room ? hash(name) : name;
  return `.${stem}.${fingerprint}.part`;
}

/** Return whether something is the part of a file whose upload is not complete. */
export function isPart(name: string): boolean {
  return /^\..+\.[0-9a-f]{8}\.part$/.test(name);
}

// not crypto.subtle: that is not there where a page came over plain http
function hash(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}
