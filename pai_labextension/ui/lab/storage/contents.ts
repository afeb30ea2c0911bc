// Files of the storage as JupyterLab's models of contents, and back.

import { Contents } from '@jupyterlab/services';

import { IFileInfo } from '../../console/storage/client';
import { nameOf, partsOf } from '../../console/storage/paths';

/** Bytes of the largest file that is opened in the browser. */
export const LARGEST_OPENED = 20 * 1024 * 1024;

/** A file is no text, or no notebook: it cannot be shown as what was asked for. */
export class FormatError extends Error {}

/** Return what JupyterLab takes something for. */
export function typeOf(info: IFileInfo): Contents.ContentType {
  return info.isFolder ? 'directory' : info.path.endsWith('.ipynb') ? 'notebook' : 'file';
}

/** The model of a file or folder, without what is in it. */
export function modelOf(info: IFileInfo): Contents.IModel {
  const modified = new Date(info.modified).toISOString();
  return {
    name: nameOf(info.path),
    path: partsOf(info.path).join('/'),
    type: typeOf(info),
    writable: true,
    created: modified,
    last_modified: modified,
    mimetype: '',
    content: null,
    format: info.isFolder || info.path.endsWith('.ipynb') ? 'json' : null,
    ...(info.isFolder ? {} : { size: info.length })
  };
}

/** The contents of a file in a format; without one: text where it is text. */
export function decode(
  bytes: Uint8Array,
  type: Contents.ContentType,
  format: Contents.FileFormat | undefined
): { format: Contents.FileFormat; content: unknown } {
  if (type === 'notebook' || format === 'json') {
    // what was just created has no contents yet
    return { format: 'json', content: bytes.length === 0 ? emptyNotebook() : JSON.parse(textOf(bytes)) };
  }
  if (format === 'base64') {
    return { format, content: toBase64(bytes) };
  }
  try {
    return { format: 'text', content: textOf(bytes) };
  } catch (error) {
    if (format === 'text' || !(error instanceof FormatError)) {
      throw error;
    }
    return { format: 'base64', content: toBase64(bytes) };
  }
}

/** What is to be written for a model; a notebook as Jupyter writes it. */
export function encode(model: Partial<Contents.IModel>): Blob {
  if (model.format === 'base64') {
    return new Blob([fromBase64(String(model.content ?? ''))]);
  }
  if (model.type === 'notebook' || model.format === 'json') {
    return new Blob([JSON.stringify(model.content, null, 1) + '\n']);
  }
  return new Blob([String(model.content ?? '')]);
}

/** A notebook without cells. */
export function emptyNotebook(): unknown {
  return { cells: [], metadata: {}, nbformat: 4, nbformat_minor: 5 };
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FormatError();
  }
}

function toBase64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  // as many bytes at a time as a call has room for
  for (let start = 0; start < bytes.length; start += 0x8000) {
    pieces.push(String.fromCharCode(...bytes.subarray(start, start + 0x8000)));
  }
  return btoa(pieces.join(''));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), character => character.charCodeAt(0));
}
