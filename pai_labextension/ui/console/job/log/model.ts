// The log that a job's page shows: which one, which part of it, and whether it is followed.

import { IAttemptTask, ILogSource, Stream } from '../../data/client';
import { ApiError, messageOf } from '../../data/errors';
import { JobModel, tasksOf } from '../../data/job';
import { IDisposable, IFollowed, Poll, Signal } from '../../data/store';
import { ILine, IPart, LogReader, patternOf } from './reader';
import { LogWindow } from './window';

/** ms between two questions while something is written, and at most while nothing is, or nobody answers. */
const SOON = 150;
const LATE = 1_000;
const LATEST = 15_000;
/** Logs shown together that are told of as they are written; of more it is asked. */
const MOST_TOLD = 4;

/** Which log: one task's, or those of several in order of time. */
export interface ILogChoice {
  readonly tasks: readonly IAttemptTask[];
  readonly stream: Stream;
  /** Whose they are: this role's, or where it is empty all tasks'; absent: it is one task's. */
  readonly together?: string;
}

/** How a search goes: how far it is (from 0 to 1), or that it found nothing. */
export type Search = { readonly done: number } | 'nothing' | null;

export class LogModel implements IDisposable {
  constructor(readonly job: JobModel) {
    this.poll = new Poll(() => this.lookNext(), {
      interval: SOON,
      max: LATEST,
      followed: () => this.followed()
    });
    this.deaf = job.changed.connect(() => {
      this.followJob();
      if (!this.begun) {
        this.poll.soon(); // its task may have started
      }
    });
  }

  get lines(): readonly ILine[] {
    return this.window.lines;
  }

  get choice(): ILogChoice {
    return this._choice;
  }

  /** Whether new lines come into view by themselves. */
  get following(): boolean {
    return this._following;
  }

  get atStart(): boolean {
    return this.window.atStart;
  }

  get atEnd(): boolean {
    return this.window.atEnd;
  }

  /** Where the first shown byte is in a single log, and how long that is. */
  get place(): { top: number; size: number } {
    return this.window.place;
  }

  /** Whether the log has been asked for since it was chosen. */
  get isKnown(): boolean {
    return this.begun;
  }

  /** Why it could not be read; empty when it could. */
  get error(): string {
    return this._error;
  }

  get search(): Search {
    return this._search;
  }

  /** The line in which the search found something; `null`: none. */
  get found(): ILine | null {
    return this._found;
  }

  readonly changed = new Signal();

  /** Tells which line is to come into view, or that the beginning is. */
  readonly revealed = new Signal<ILine | 'start' | 'end'>();

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  /** Show the log that the person has chosen, from its end. */
  choose(choice: ILogChoice): void {
    this.isChosen = true;
    this.show(choice);
  }

  /** Show a task's log, and what was shown of another one: that stream. */
  chooseTask({ role, index, attempt }: IAttemptTask): void {
    this.choose({ tasks: [{ role, index, attempt }], stream: this.choice.stream });
  }

  /** Show the log of the last attempt until another one is chosen: of the task that decided it, else the first. */
  private followJob(): void {
    const { known } = this.job;
    const last = known?.attempts.at(-1);
    if (this.isChosen || !last) {
      return;
    }
    const { attempt, trigger } = last;
    const [first] = tasksOf(known!.detail.taskRoles, attempt);
    const { role, index } = trigger ? { role: trigger.taskRole, index: trigger.taskIndex } : (first ?? {});
    if (role !== undefined && index !== undefined) {
      this.show({ tasks: [{ role, index, attempt }], stream: this.choice.stream });
    }
  }

  private show(choice: ILogChoice): void {
    if (JSON.stringify(choice) === JSON.stringify(this._choice)) {
      return;
    }
    this._choice = choice;
    this.cancelSearch();
    this._found = null;
    const together = choice.tasks.length > 1;
    this.readers = choice.tasks.map((task, index) => {
      const source = this.job.client.logSource(this.job.name, task, choice.stream);
      return new LogReader(together ? orEmpty(source) : source, index);
    });
    this.window = new LogWindow(this.readers);
    this.begun = false;
    this._error = '';
    this._following = true;
    this.changed.emit();
    this.early = null;
    if (this.isShown) {
      // before the page is drawn with it
      this.early = this.inTurn(() => this.look());
      this.early.catch(() => undefined); // the poll is told
      void this.poll.refresh();
    }
  }

  setShown(shown: boolean): void {
    this.isShown = shown;
    if (shown) {
      this.poll.start();
    } else {
      this.poll.stop();
    }
  }

  /** Note whether the end is in view: only then it is followed. */
  setFollowing(following: boolean): void {
    if (following !== this._following) {
      this._following = following;
      if (this.poll.follow()) {
        this.poll.soon();
      }
      this.changed.emit();
    }
  }

  /** Read what is before, or after what is shown. */
  async more(before: boolean): Promise<void> {
    if (this.reading || !this.begun || (before ? this.atStart : this.atEnd)) {
      return;
    }
    this.reading = true;
    await this.act(async window => {
      await (before ? window.before() : window.after());
    });
    this.reading = false;
  }

  async toEnd(): Promise<void> {
    await this.act(window => window.toEnd());
    this._following = true;
    this.poll.follow();
    this.revealed.emit('end');
  }

  async toStart(): Promise<void> {
    await this.go(window => window.toStart());
  }

  /** Show what was written at a part (from 0 to 1) of a single log. */
  async toPart(part: number): Promise<void> {
    await this.go(window => window.toOffset(Math.floor(part * window.place.size)));
  }

  /** Show what was written from a time (ms since the epoch) on. */
  async toTime(time: number): Promise<void> {
    await this.go(window => window.toTime(time));
  }

  /** Show the next place, or the one before, at which a text stands; `index`: the line from which one looks. */
  async find(text: string, backwards: boolean, index: number): Promise<void> {
    this.cancelSearch();
    const search = (this.searching = {});
    const window = this.window;
    const places = window.placesFrom(this._found ? this.lines.indexOf(this._found) : index);
    this._following = false;
    let best: { task: number; offset: number; time: number } | null = null;
    try {
      for (const [task, reader] of this.readers.entries()) {
        const found = this._found;
        const start = found?.task === task ? (backwards ? found.start : found.end) : places[task]!;
        const offset = await reader.find(patternOf(text), start, backwards, part => {
          this._search = { done: (task + part) / this.readers.length };
          this.changed.emit();
          return this.searching === search && !this.isDisposed;
        });
        if (this.searching !== search) {
          return;
        }
        if (offset !== null) {
          const time = this.readers.length === 1 ? 0 : await reader.timeAt(offset);
          if (best === null || (backwards ? time > best.time : time < best.time)) {
            best = { task, offset, time };
          }
        }
      }
    } catch (error) {
      this.fail(error);
    }
    this._search = best ? null : 'nothing';
    if (best) {
      const { task, offset } = best;
      await this.act(async shown => {
        const line = this.lines.find(one => one.task === task && one.start <= offset && offset < one.end);
        this._found = line ?? (await shown.toLine(task, offset)) ?? null;
      });
    }
    this.changed.emit();
    if (best && this._found) {
      this.revealed.emit(this._found);
    }
  }

  cancelSearch(): void {
    this.searching = null;
    this._search = null;
    this.changed.emit();
  }

  dispose(): void {
    this.searching = null;
    this.deaf();
    this.poll.dispose();
    this.changed.clear();
    this.revealed.clear();
  }

  private lookNext(): Promise<void> {
    const { early } = this;
    this.early = null;
    return early ?? this.inTurn(() => this.look());
  }

  /** See whether there is more to show. */
  private async look(): Promise<void> {
    const { window } = this;
    if (this.readers.length === 0) {
      return;
    }
    let news = false;
    try {
      if (!this.begun) {
        await window.toEnd();
        news = true;
      } else if (this._following) {
        news = await window.after();
      } else if (this.readers.length === 1) {
        await window.measure();
      }
      if (window === this.window) {
        this.begun = true;
        news ||= this._error !== '';
        this._error = '';
      }
    } catch (error) {
      this.fail(error);
      throw error; // the poll then asks less often
    } finally {
      this.pace(news);
      if (news && !this.isDisposed) {
        this.changed.emit();
      }
    }
  }

  /** Return what is told of: the end of what is shown, while somebody looks there. */
  private followed(): IFollowed[] {
    const { stream } = this.job.client;
    const isSeen = this.begun && this._following && this.window.atEnd && document.visibilityState === 'visible';
    if (!stream || !isSeen || this.readers.length > MOST_TOLD) {
      return [];
    }
    const { window, readers } = this;
    return readers.flatMap((reader, index) => {
      const take = (data: unknown) => void this.inTurn(() => this.take(window, index, reader.told(data)));
      const cursor = String(window.ends[index]);
      return reader.subject ? [{ stream, subject: reader.subject, pause: 0, cursor, take }] : [];
    });
  }

  /** Show a piece that was told. */
  private async take(window: LogWindow, index: number, part: IPart): Promise<void> {
    if (window !== this.window || !this._following || this.isDisposed) {
      return;
    }
    try {
      if (await window.take(index, part)) {
        this.changed.emit();
      }
      if (!window.atEnd) {
        this.poll.soon();
      }
    } catch {
      this.poll.soon(); // which says why it cannot be read
    }
  }

  /** Ask soon while something is written, and later the longer nothing is. */
  private pace(news: boolean): void {
    const least = SOON * Math.ceil(this.readers.length / 4);
    const interval = news ? least : Math.min(Math.max(LATE, least), this.poll.interval * 1.5);
    this.poll.interval = interval;
  }

  private async go(step: (window: LogWindow) => Promise<void>): Promise<void> {
    this._following = false;
    this._found = null;
    await this.act(step);
    this.revealed.emit('start');
  }

  private act(step: (window: LogWindow) => Promise<void>): Promise<void> {
    return this.inTurn(async () => {
      try {
        await step(this.window);
        this._error = '';
      } catch (error) {
        this.fail(error);
      }
      if (!this.isDisposed) {
        this.changed.emit();
      }
    });
  }

  /** One thing after the other: each step begins where the one before has come to. */
  private inTurn(step: () => Promise<void>): Promise<void> {
    const next = this.turn.then(step);
    this.turn = next.catch(() => undefined);
    return next;
  }

  private fail(error: unknown): void {
    // before a task has started there is nothing to read
    const early = error instanceof ApiError && error.status === 404;
    this._error = early ? '' : messageOf(error);
    if (!this.isDisposed) {
      this.changed.emit();
    }
  }

  private readonly poll: Poll;
  private readonly deaf: () => void;
  /** Whether the person has chosen a log. */
  private isChosen = false;
  private _choice: ILogChoice = { tasks: [], stream: 'all' };
  private early: Promise<void> | null = null;
  private readers: readonly LogReader[] = [];
  private window = new LogWindow([]);
  private turn: Promise<void> = Promise.resolve();
  private begun = false;
  private isShown = false;
  private reading = false;
  private searching: object | null = null;
  private _following = true;
  private _error = '';
  private _search: Search = null;
  private _found: ILine | null = null;
}

/** Of several logs some may not be there yet. */
function orEmpty(source: ILogSource): ILogSource {
  const orNothing = (offset: number) => (error: unknown) => {
    if (error instanceof ApiError && (error.status === 404 || error.status === 410)) {
      return { headers: new Headers({ 'X-Log-Offset': String(Math.max(0, offset)) }), body: new Uint8Array() };
    }
    throw error;
  };
  return {
    read: (offset, limit, timestamps) => source.read(offset, limit, timestamps).catch(orNothing(offset)),
    since: (time, limit) => source.since(time, limit).catch(orNothing(0)),
    ...(source.subject ? { subject: source.subject } : {})
  };
}
