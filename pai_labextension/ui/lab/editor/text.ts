// A job's JSON text, with comments and trailing commas or without: what it means, where each value stands, and how one is changed.

import {
  applyEdits,
  createScanner,
  Edit,
  findNodeAtLocation,
  getNodeValue,
  modify,
  Node,
  ParseError,
  parseTree,
  SyntaxKind
} from 'jsonc-parser';

/** Where in a job something is: `['taskRoles', 0, 'name']`. */
export type Path = readonly (string | number)[];

/** What a text means; `config` and `tree` are only there where it has no error. */
export interface IParsedText {
  readonly config: unknown;
  readonly tree: Node | undefined;
  /** The first place that is no JSON. */
  readonly error: ParseError | null;
}

/** A stretch of a text. */
export interface IRange {
  readonly from: number;
  readonly to: number;
}

const FORMAT = { insertSpaces: true, tabSize: 2, eol: '\n' };

/** Read a text; a blank one is an empty job. */
export function parseText(text: string): IParsedText {
  if (text.trim() === '') {
    return { config: {}, tree: undefined, error: null };
  }
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  return errors.length > 0 || !tree
    ? { config: undefined, tree: undefined, error: errors[0] ?? { error: 1, offset: 0, length: text.length } }
    : { config: getNodeValue(tree), tree, error: null };
}

/** Write a job as a person would. */
export function textOf(config: unknown): string {
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** Return what sets one value in a text without errors (`undefined` removes it); the rest stays as it was written. */
export function edits(text: string, path: Path, value: unknown, insert = false): Edit[] {
  return value === undefined
    ? removal(text, path)
    : modify(text, [...path], value, { formattingOptions: FORMAT, isArrayInsertion: insert });
}

/** Return what removes a value with its name, its comma and the line that it leaves blank (`modify` breaks lists). */
function removal(text: string, path: Path): Edit[] {
  const { tree } = parseText(text);
  const node = tree && findNodeAtLocation(tree, [...path]);
  const item = node?.parent?.type === 'property' ? node.parent : node;
  const siblings = item?.parent?.children;
  if (!item || !siblings) {
    return [];
  }
  const before = siblings[siblings.indexOf(item) - 1];
  const end = item.offset + item.length;
  const own = commaBehind(text, item);
  const comma = own ?? (before && commaBehind(text, before));
  const next = own === end ? end + 1 : end;
  const [blanks, newline] = /^[ \t]*(\r?\n)?/.exec(text.slice(next))!;
  const isLast = own === undefined || newline !== undefined;
  const from = isLast ? text.slice(0, item.offset).replace(/[ \t]+$/, '').length : item.offset;
  const to = newline === undefined && own === undefined ? next : next + blanks.length;
  const cut = { offset: from, length: to - from, content: '' };
  return comma === undefined || comma === end ? [cut] : [cut, { offset: comma, length: 1, content: '' }];
}

/** Return where the comma behind an item stands; `undefined`: there is none. */
function commaBehind(text: string, { offset, length }: Node): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset + length);
  return scanner.scan() === SyntaxKind.CommaToken ? scanner.getTokenOffset() : undefined;
}

/** Return what swaps two items of a list, each with the comments in it. */
export function swapEdits(text: string, list: Path, first: number, second: number): Edit[] {
  const { tree } = parseText(text);
  const nodes = [first, second].map(index => tree && findNodeAtLocation(tree, [...list, index]));
  const [one, other] = nodes;
  if (!one || !other) {
    return [];
  }
  const textAt = ({ offset, length }: Node) => text.slice(offset, offset + length);
  return [
    { offset: one.offset, length: one.length, content: textAt(other) },
    { offset: other.offset, length: other.length, content: textAt(one) }
  ];
}

/** Carry edits out. */
export function applied(text: string, changes: Edit[]): string {
  return applyEdits(text, changes);
}

/** Return where a value stands with its key, or the beginning of the innermost thing around it that there is. */
export function rangeOf(tree: Node | undefined, path: Path): IRange {
  for (let depth = path.length; tree && depth >= 0; depth--) {
    const node = findNodeAtLocation(tree, path.slice(0, depth));
    if (node && depth === path.length) {
      const whole = node.parent?.type === 'property' ? node.parent : node;
      const isLong = node.type === 'object' || node.type === 'array';
      return { from: whole.offset, to: isLong ? node.offset + 1 : whole.offset + whole.length };
    }
    if (node) {
      return { from: node.offset, to: node.offset + 1 };
    }
  }
  return { from: 0, to: 0 };
}

const STEP = /\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/g;

/** Read a path as the scheduler writes it: `$.taskRoles[0].name`, `$.jobEnvs["a b"]`. */
export function pathOf(text: string): Path {
  return [...text.matchAll(STEP)].map(([, word, index, quoted]) =>
    index === undefined ? (word ?? (JSON.parse(quoted!) as string)) : Number(index)
  );
}

/** Write a path so that two are the same where their texts are. */
export function keyOf(path: Path): string {
  return JSON.stringify(path);
}

/** Return the value at a path; `undefined` where there is none. */
export function valueAt(config: unknown, path: Path): unknown {
  let here = config;
  for (const part of path) {
    here = typeof here === 'object' && here !== null ? (here as Record<string | number, unknown>)[part] : undefined;
  }
  return here;
}

/** Return whether a value is an object, no list and not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Return whether a value is a list of objects. */
export function isListOfObjects(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.every(isObject);
}

const UNIQUE_SUFFIX = /_[0-9a-f]{8}$/;

/** Return a name with eight random characters behind it, in place of those it has had so far. */
export function uniqueName(name: string): string {
  const random = crypto.getRandomValues(new Uint32Array(1))[0]!;
  return `${name.replace(UNIQUE_SUFFIX, '') || 'job'}_${random.toString(16).padStart(8, '0')}`;
}
