// A job's JSON text, with comments and trailing commas or without: what it means, where each value stands, how one is
// changed, what is wrong with it, and what its fields are.

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
  printParseErrorCode,
  SyntaxKind
} from 'jsonc-parser';

import { ITranslation } from '../host';

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

/** Name line and column of the first place of a text that is no JSON, and what is wrong there. */
export function textProblem(text: string, error: ParseError, trans: ITranslation): string {
  const before = text.slice(0, error.offset).split('\n');
  const [line, column] = [before.length, before.at(-1)!.length + 1];
  return trans.__('Line %1, column %2: %3', line, column, textErrorWords(error, trans));
}

/** Return why the form has no fields for what a text says; `null` where it has. */
export function shapeProblem(config: unknown, trans: ITranslation): string | null {
  if (!isObject(config)) {
    return trans.__('A job is a JSON object: the text has to begin with {.');
  }
  for (const name of ['jobEnvs', 'extras']) {
    if (!isObject(config[name] ?? {})) {
      return trans.__('%1 has to be an object; put it right in the text.', name);
    }
  }
  const roles = config.taskRoles ?? [];
  const wrong = !isListOfObjects(roles)
    ? 'taskRoles'
    : roles.every(role => isListOfObjects(valueAt(role, ['portList']) ?? []))
      ? null
      : 'portList';
  return wrong && trans.__('%1 has to be a list of objects; put it right in the text.', wrong);
}

/** Say what is wrong at a place of a text that is no JSON. */
export function textErrorWords(error: ParseError, trans: ITranslation): string {
  switch (printParseErrorCode(error.error)) {
    case 'CommaExpected':
      return trans.__('a comma is missing before this');
    case 'ColonExpected':
      return trans.__('a colon is missing before this');
    case 'PropertyNameExpected':
      return trans.__('a name in double quotes is missing here, or a comma before it is too many');
    case 'ValueExpected':
      return trans.__('a value is missing here, or a comma before it is too many');
    case 'CloseBraceExpected':
      return trans.__('a closing } is missing');
    case 'CloseBracketExpected':
      return trans.__('a closing ] is missing');
    case 'EndOfFileExpected':
      return trans.__('the job ends before this');
    case 'UnexpectedEndOfString':
      return trans.__('the closing quote of this text is missing');
    case 'UnexpectedEndOfComment':
      return trans.__('the end of this comment is missing');
    case 'InvalidUnicode':
    case 'InvalidEscapeCharacter':
      return trans.__('no such character can stand behind a backslash in a text');
    default:
      return trans.__('this is no JSON');
  }
}

type Part = Record<string, unknown>;

/** What there is to say about a field. */
export interface IFieldWords {
  readonly title: string;
  readonly description: string;
  /** What counts where the job says nothing; empty: nothing does. */
  readonly fallback: string;
}

/** The job's JSON Schema: what its fields are called, what they may be, and which must be there. */
export class JobSchema {
  constructor(private readonly root: Part) {}

  /** Return the words of a field, wherever in a job it is. */
  words(path: Path): IFieldWords {
    const part = this.at(path);
    const text = (key: string) => (typeof part[key] === 'string' ? part[key] : '');
    const fallback = part.default;
    return {
      title: text('title') || String(path.at(-1)),
      description: text('description'),
      fallback: typeof fallback === 'string' || typeof fallback === 'number' ? String(fallback) : ''
    };
  }

  /** List the fields that an object at this path may have, without those that are no longer used. */
  names(path: Path): string[] {
    const fields = this.at(path).properties;
    return isObject(fields) ? Object.keys(fields).filter(name => !this.at([...path, name]).deprecated) : [];
  }

  /** List the values that a field may have, where these are few. */
  values(path: Path): unknown[] {
    const part = this.at(path);
    return Array.isArray(part.enum) ? part.enum : part.type === 'boolean' ? [true, false] : [];
  }

  /** Return the value that a new field begins with. */
  beginning(path: Path): unknown {
    const { default: fallback, type } = this.at(path);
    const first = Array.isArray(type) ? (type[0] as unknown) : type;
    const blank = { array: [], object: {}, boolean: false, integer: 0, string: '' }[String(first)];
    return fallback ?? blank ?? '';
  }

  /** List the texts that must be there and are not, or are blank. */
  blanks(config: unknown): Path[] {
    const found = this.blanksIn(config, []);
    const roles = valueAt(config, ['taskRoles']);
    for (const [index, role] of (Array.isArray(roles) ? roles : []).entries()) {
      const path: Path = ['taskRoles', index];
      found.push(...this.blanksIn(role, path));
      const ports = valueAt(role, ['portList']);
      for (const [port, range] of (Array.isArray(ports) ? ports : []).entries()) {
        found.push(...this.blanksIn(range, [...path, 'portList', port]));
      }
    }
    return found;
  }

  private blanksIn(value: unknown, path: Path): Path[] {
    const { required } = this.at(path);
    return (Array.isArray(required) ? (required as string[]) : [])
      .filter(name => this.at([...path, name]).type === 'string')
      .filter(name => (valueAt(value, [name]) ?? '') === '')
      .map(name => [...path, name]);
  }

  private at(path: Path): Part {
    let part = this.resolved(this.root);
    for (const step of path) {
      const next = typeof step === 'number' ? part.items : valueAt(part, ['properties', step]);
      part = this.resolved(isObject(next) ? next : {});
    }
    return part;
  }

  private resolved(part: Part): Part {
    const name = typeof part.$ref === 'string' ? part.$ref.replace('#/$defs/', '') : undefined;
    const target = name === undefined ? undefined : valueAt(this.root, ['$defs', name]);
    return isObject(target) ? { ...target, ...part } : part;
  }
}

/** What a task asks for where nobody has said anything: enough for Python and its libraries. */
const ENOUGH = { taskNumber: 1, cpuNumber: 1, memoryMB: 1024, gpuNumber: 0, command: '' };

/** Return the job that an empty editor begins with; where tasks have no container, its image is one by name only. */
export function emptyJob(imageNeeded: boolean, name: string): string {
  return textOf({
    jobName: name,
    image: imageNeeded ? '' : 'local/python',
    virtualCluster: 'default',
    taskRoles: [{ name: 'main', ...ENOUGH }]
  });
}

/** Return a task role like another of them, or a blank one, with a name that none of them has. */
export function roleLike(roles: readonly Record<string, unknown>[], index?: number): Record<string, unknown> {
  const role = index === undefined ? { name: '', ...ENOUGH } : structuredClone(roles[index]!);
  const taken = new Set(roles.map(({ name }) => name));
  const stem = (typeof role.name === 'string' ? role.name : '').replace(/_?\d+$/, '') || 'task';
  let number = roles.length + 1;
  while (taken.has(`${stem}_${number}`)) {
    number += 1;
  }
  return { ...role, name: `${stem}_${number}` };
}

/** Read "prepare, fetch:ended" as a job has it; `undefined` for a blank text. What is wrong, the scheduler names. */
export function afterOf(text: string): unknown {
  const entries = text
    .split(',')
    .map(entry => entry.trim())
    .filter(Boolean)
    .map(entry => {
      const [job, ...on] = entry.split(':');
      return on.length > 0 ? { job: job!.trim(), on: on.join(':').trim() } : entry;
    });
  return entries.length > 0 ? entries : undefined;
}

/** Write the jobs that a job waits for in a line. */
export function afterText(value: unknown): string {
  return Array.isArray(value) ? value.map(entryText).join(', ') : shown(value);
}

/** Write a value as an input shows it; what is no text as JSON. */
export function shown(value: unknown): string {
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

function entryText(entry: unknown): string {
  if (isObject(entry) && typeof entry.job === 'string') {
    return entry.on === undefined ? entry.job : `${entry.job}:${shown(entry.on)}`;
  }
  return shown(entry);
}
