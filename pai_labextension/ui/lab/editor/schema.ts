// The job's JSON Schema: what its fields are called, what they may be, and which must be there.

import { isObject, Path, valueAt } from './text';

type Part = Record<string, unknown>;

/** What there is to say about a field. */
export interface IFieldWords {
  readonly title: string;
  readonly description: string;
  /** What counts where the job says nothing; empty: nothing does. */
  readonly fallback: string;
}

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
