// The one job that form and text both show: its text, what that means, what is wrong with it, whether it fits.

import { Edit, ParseError } from 'jsonc-parser';

import { Client, IJobName, INode, IValidation } from '../data/client';
import { ApiError } from '../data/errors';
import { Debouncer, IDisposable, ISignal, Polled, Signal } from '../data/store';
import { ITranslation } from '../host';
import { JobEditorInfo } from '../generated/types.gen';
import {
  applied,
  edits,
  IParsedText,
  isListOfObjects,
  isObject,
  JobSchema,
  keyOf,
  parseText,
  Path,
  pathOf,
  roleLike,
  shapeProblem,
  swapEdits,
  textOf,
  textProblem,
  uniqueName,
  valueAt
} from './text';

/** A text that others show and change, too. */
export interface ITextBuffer {
  readonly text: string;
  /** Put another text in its place. */
  set(text: string): void;
  /** Carry edits out, at once; where they are is where that is before any of them. */
  edit(changes: readonly Edit[]): void;
  readonly changed: ISignal;
}

/** Something that is wrong with a job, and where. */
export interface IMistake {
  readonly path: Path;
  readonly message: string;
}

/** Something that is in the way of a job: fields, and the words before and after them. */
export interface IProblem {
  readonly kind: 'bad' | 'warn' | 'needed';
  readonly before: string;
  readonly places: readonly Path[];
  readonly after: string;
}

/** What there is in the cluster. */
export interface ICluster {
  readonly nodes: readonly INode[];
  readonly virtualClusters: readonly string[];
}

/** ms after the last key before the scheduler is asked, and between two looks at what is free. */
const TYPING = 300;
const LOOKING = 30_000;

/** Characters of the longest text that the scheduler takes with its comments. */
const LONGEST_KEPT = 256 * 1024;

/** Where the scheduler's refusals belong that are about one field. */
const PLACES: Record<string, Path> = {
  ConflictJobError: ['jobName'],
  NoVirtualClusterError: ['virtualCluster']
};

/** Return the text of a copy of a job, with its comments, under a name of its own. */
export async function copyOf(client: Client, job: IJobName): Promise<string> {
  const text = await client.submittedText(job);
  const written = text.includes('\n') ? text : textOf(parseText(text).config);
  return applied(written, edits(written, ['jobName'], uniqueName(job.name)));
}

export class JobEditorModel implements IDisposable {
  readonly schema: JobSchema;
  /** What there is in the cluster, as last heard. */
  readonly cluster: Polled<ICluster>;

  /**
   * @param buffer - the text, which the code editor changes too
   * @param typing - ms after the last key before the scheduler is asked
   */
  constructor(
    private readonly buffer: ITextBuffer,
    readonly info: JobEditorInfo,
    private readonly api: Client,
    private readonly trans: ITranslation,
    typing = TYPING
  ) {
    this.schema = new JobSchema(info.jobSchema);
    this.parsed = this.read();
    this.asking = new Debouncer(() => this.check(), typing);
    this.cluster = new Polled(() => this.look(), LOOKING);
    // what is free has changed, and with it perhaps what the scheduler says
    this.cluster.changed.connect(() => this.asking.invoke());
    this.deaf = buffer.changed.connect(() => this.onText());
  }

  /** Emitted whenever what is shown may be another. */
  readonly changed = new Signal();
  /** Emitted where somebody wants to go to a field. */
  readonly wanted = new Signal<Path>();

  get isDisposed(): boolean {
    return this.asking.isDisposed;
  }

  get text(): string {
    return this.buffer.text;
  }

  /** The job as it was when its text last had no error. */
  get config(): Record<string, unknown> {
    return isObject(this.good) ? this.good : {};
  }

  get tree(): IParsedText['tree'] {
    return this.parsed.tree;
  }

  /** The first place of the text that is no JSON. */
  get textError(): ParseError | null {
    return this.parsed.error;
  }

  /** Why the form cannot show the job; `null` where it can. */
  get obstacle(): string | null {
    const { error, config } = this.parsed;
    return error ? textProblem(this.text, error, this.trans) : shapeProblem(config, this.trans);
  }

  /** Whether the person has yet to begin. */
  get isUntouched(): boolean {
    return this.text === this.beginning;
  }

  /** Required texts that are blank: they are asked for, and not called wrong. */
  get needed(): Path[] {
    return this.obstacle === null ? this.schema.blanks(this.config) : [];
  }

  /** What the scheduler found wrong, but for what is only still needed. */
  get mistakes(): readonly IMistake[] {
    const needed = new Set(this.needed.map(keyOf));
    return this.obstacle === null ? this.found.filter(({ path }) => !needed.has(keyOf(path))) : [];
  }

  /** What is no mistake, and had better be known. */
  get warnings(): IMistake[] {
    const answer = this.answered === this.version ? this._answer : null;
    return (answer?.warnings ?? []).map(({ path, message }) => ({ path: pathOf(path), message }));
  }

  /** What the scheduler said about the job as it is now; `null`: it has not yet, or could not. */
  get answer(): IValidation | null {
    return this.answered === this.version && this.found.length === 0 ? this._answer : null;
  }

  /** All that is known to keep the job from being submitted or from ever starting, and what had better be known. */
  get problems(): IProblem[] {
    const { mistakes, needed, obstacle, refusal, trans, trouble } = this;
    const problem = (kind: IProblem['kind'], before: string, places: readonly Path[] = [], after = ''): IProblem[] =>
      before || places.length > 0 ? [{ kind, before, places, after }] : [];
    // (an answer without mistakes is told as a whole: whether it starts now, later or never)
    const unfit = obstacle === null && this.found.length > 0 && this._answer?.fits === 'never';
    return [
      ...problem('bad', refusal && trans.__('Not submitted: %1', refusal)),
      ...problem('bad', obstacle ?? ''),
      ...problem('needed', needed.length > 0 ? trans.__('Still needed:') : '', needed),
      ...mistakes.flatMap(({ path, message }) => problem('bad', '', [path], message)),
      ...problem('bad', unfit ? this._answer!.reason : ''),
      ...this.warnings.flatMap(({ path, message }) => problem('warn', '', [path], message)),
      ...problem('warn', trouble && trans.__('Whether the job fits is not known: %1. You can go on writing.', trouble))
    ];
  }

  /** Whether the scheduler has still to say something about the job as it is now. */
  get isChecking(): boolean {
    return this.answered !== this.version && this.trouble === '' && this.obstacle === null;
  }

  /** What there is to say about the text that was taken last. */
  notice = '';

  /** Why the scheduler could not be asked, or refused the job; empty: nothing to tell. */
  trouble = '';
  refusal = '';
  isSubmitting = false;
  /** Who submits, once that is known. */
  user: string | null = null;

  /** The name of the job that was submitted as it is now. */
  get submitted(): string | null {
    return this._submitted?.text === this.text ? this._submitted.name : null;
  }

  /** Whether there is something that is neither submitted nor as it was in the beginning. */
  get hasChanges(): boolean {
    return !this.isUntouched && this.submitted === null;
  }

  roles(): Record<string, unknown>[] {
    const { taskRoles } = this.config;
    return isListOfObjects(taskRoles) ? taskRoles : [];
  }

  value(path: Path): unknown {
    return valueAt(this.config, path);
  }

  mistakesAt(path: Path): string[] {
    const key = keyOf(path);
    return this.mistakes.filter(mistake => keyOf(mistake.path) === key).map(({ message }) => message);
  }

  /** Return what is wrong with a field that is a list or an object, and with what is in it. */
  mistakesWithin(path: Path): string[] {
    const key = keyOf(path);
    return this.mistakes
      .filter(mistake => keyOf(mistake.path.slice(0, path.length)) === key)
      .map(({ message }) => message);
  }

  /**
   * Take another text.
   *
   * @param options - `beginning`: it counts as untouched; `submitted`: it was submitted under that name
   */
  setText(text: string, options: { beginning?: boolean; submitted?: string | null } = {}): void {
    const { beginning = false, submitted = null } = options;
    this.beginning = beginning ? text : this.beginning;
    this._submitted = submitted === null ? this._submitted : { text, name: submitted };
    this.buffer.set(text);
  }

  /** Take another text, and say something about it; what stood there can be had back. */
  replace(text: string, notice: string): void {
    this.replaced = this.isUntouched ? null : this.text;
    this.notice = notice;
    this.setText(text);
  }

  /** Return to what one began with, and say something about it; what stood there can be had back. */
  startOver(notice: string): void {
    this.replace(this.beginning, notice);
  }

  /** Whether there was another text before the one that was taken last. */
  get canUndo(): boolean {
    return this.replaced !== null;
  }

  /** Return to what stood there before another text was taken. */
  undo(): void {
    if (this.replaced !== null) {
      this.setText(this.replaced);
    }
    this.replaced = null;
    this.notice = '';
    this.changed.emit();
  }

  /** Return to the text that was JSON last. */
  goBack(): void {
    this.buffer.set(this.goodText);
  }

  /** Set one value, or remove it (`undefined`); the rest of the text stays as it was written. */
  edit(path: Path, value: unknown): void {
    this.buffer.edit(edits(this.text, path, value));
  }

  /** Put a new item into a list, before what is there. */
  insert(path: Path, value: unknown): void {
    this.buffer.edit(edits(this.text, path, value, true));
  }

  /** Let two task roles change places. */
  swapRoles(first: number, second: number): void {
    this.buffer.edit(swapEdits(this.text, ['taskRoles'], first, second));
  }

  /** Add a task role that is like another, or blank, right after it. */
  addRole(like?: number): void {
    const roles = this.roles();
    this.insert(['taskRoles', like === undefined ? roles.length : like + 1], roleLike(roles, like));
  }

  /** Know that a text was submitted, in another way than by `submit`. */
  setSubmitted(text: string, name: string): void {
    this._submitted = { text, name };
    this.changed.emit();
  }

  /** Submit; resolves with the job, or with `null` where `refusal` says why not. */
  async submit(): Promise<IJobName | null> {
    const { text, version } = this;
    const name = String(this.config.jobName);
    this.isSubmitting = true;
    this.refusal = '';
    this.changed.emit();
    try {
      const username = (this.user ??= (await this.api.whoami()).username);
      await this.api.submit(text.length > LONGEST_KEPT ? this.config : text);
      this._submitted = { text, name };
      return { name, username };
    } catch (error) {
      this.refuse(error as Error, version);
      return null;
    } finally {
      this.isSubmitting = false;
      this.changed.emit();
    }
  }

  /** Note that it came into view, or went: what is free is asked for only while somebody looks. */
  setShown(shown: boolean): void {
    this.cluster.setShown(shown);
  }

  dispose(): void {
    this.deaf();
    this.asking.dispose();
    this.cluster.dispose();
    this.changed.clear();
    this.wanted.clear();
  }

  /** Ask the scheduler what it thinks of the job as it is now. */
  private async check(): Promise<void> {
    const { version, text } = this;
    if (this.isDisposed || this.obstacle !== null || this.submitted !== null) {
      return;
    }
    let found: IMistake[] = [];
    let answer: IValidation | null = null;
    let trouble = '';
    try {
      answer = await this.api.validate(this.config);
      found = answer.errors.map(error => ({ path: pathOf(error.path), message: error.message }));
      found.push(...(await this.nameMistakes(found)));
    } catch (error) {
      trouble = (error as Error).message;
    }
    if (!this.isDisposed && version === this.version && text === this.text) {
      this.answered = trouble ? this.answered : version;
      [this.found, this._answer, this.trouble] = [found, answer, trouble];
      this.changed.emit();
    }
  }

  /** Find out whether the person has a job of that name already: it would be refused only when submitted. */
  private async nameMistakes(found: readonly IMistake[]): Promise<IMistake[]> {
    const name = this.config.jobName;
    if (typeof name !== 'string' || name === '' || found.some(({ path }) => path[0] === 'jobName')) {
      return [];
    }
    const user = (this.user ??= (await this.api.whoami()).username);
    const message = this.trans.__('You have a job of this name already. Choose another name.');
    return (await this.api.hasJob({ username: user, name })) ? [{ path: ['jobName'], message }] : [];
  }

  private async look(): Promise<ICluster> {
    const [nodes, clusters] = await Promise.all([this.api.nodes(), this.api.virtualClusters()]);
    return { nodes, virtualClusters: Object.keys(clusters).sort() };
  }

  private refuse(error: Error, version: number): void {
    this.refusal = error.message;
    const path = error instanceof ApiError ? PLACES[error.code] : undefined;
    if (path && version === this.version) {
      this.found = [{ path, message: error.message }];
      this.refusal = '';
    }
  }

  private read(): IParsedText {
    const parsed = parseText(this.text);
    if (!parsed.error) {
      [this.goodText, this.good] = [this.text, parsed.config];
    }
    return parsed;
  }

  private onText(): void {
    this.parsed = this.read();
    this.version += 1;
    this.refusal = this.trouble = '';
    // (what was found wrong stays in sight until the scheduler has looked again)
    this.changed.emit();
    this.asking.invoke();
  }

  private parsed: IParsedText;
  private goodText = '{}';
  private good: unknown = {};
  private beginning = '';
  private replaced: string | null = null;
  private found: IMistake[] = [];
  private _answer: IValidation | null = null;
  private _submitted: { text: string; name: string } | null = null;
  private version = 0;
  private answered = -1;
  private readonly asking: Debouncer;
  private readonly deaf: () => void;
}
