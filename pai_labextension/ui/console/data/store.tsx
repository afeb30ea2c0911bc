// What is known of the scheduler, kept up to date: signals that something changed, and questions that are asked again.

import * as React from 'react';

import { useShown } from '../host';
import { messageOf } from './errors';
import type { LiveStream, Subject } from './stream';

/** Something that holds on to others until it is disposed of. */
export interface IDisposable {
  readonly isDisposed: boolean;
  dispose(): void;
}

type Listener<News> = (news: News) => void;

/** Where one hears of something. */
export interface ISignal<News = void> {
  /** Call a listener from now on; the function that comes back ends that. */
  connect(listener: Listener<News>): () => void;
}

/** Tells its listeners, in the order in which they came. */
export class Signal<News = void> implements ISignal<News> {
  connect(listener: Listener<News>): () => void {
    // (two may be the same function)
    const own: Listener<News> = news => listener(news);
    this.listeners.add(own);
    return () => void this.listeners.delete(own);
  }

  emit(news: News): void {
    for (const listener of [...this.listeners]) {
      listener(news);
    }
  }

  /** Forget all listeners. */
  clear(): void {
    this.listeners.clear();
  }

  private readonly listeners = new Set<Listener<News>>();
}

/** Draw a component anew whenever a signal is heard. */
export function useSignal(signal: ISignal<unknown>): void {
  const [, setHeard] = React.useState(0);
  React.useEffect(() => signal.connect(() => setHeard(heard => heard + 1)), [signal]);
}

/** Draws what is in it anew whenever a signal is heard. */
export function OnSignal(props: { signal: ISignal<unknown>; children: () => React.ReactNode }): React.ReactElement {
  useSignal(props.signal);
  return <>{props.children()}</>;
}

/** What knows something, and asks for it while it is shown. */
export interface IShownModel {
  readonly changed: ISignal;
  /** Note that it came into view, or went. */
  setShown(shown: boolean): void;
}

/** Draw a component anew whenever a model changes, which is shown as long as the component is there and in view. */
export function useModel(model: IShownModel): void {
  const isShown = useShown();
  useSignal(model.changed);
  React.useEffect(() => {
    if (!isShown) {
      return undefined;
    }
    model.setShown(true);
    return () => model.setShown(false);
  }, [model, isShown]);
}

/** The event of the window when the server answers again. */
const ANSWERED = 'pai-server-answers';

/** Tell all polls that wait that the server answers again. */
export function tellAnswered(): void {
  window.dispatchEvent(new Event(ANSWERED));
}

export interface IPollOptions {
  /** ms between the end of a question and the next one. */
  readonly interval: number;
  /** ms between two questions at most, after several that failed. */
  readonly max: number;
  /** Whether it is asked while nobody sees the page, too. */
  readonly hidden?: () => boolean;
  /** What is followed at the moment, so that nothing need be asked again and again. */
  readonly followed?: () => readonly IFollowed[];
}

/** Something that is followed because it may change an answer. */
export interface IFollowed {
  readonly stream: LiveStream;
  readonly subject: Subject;
  /** ms between two questions that it leads to, at least. */
  readonly pause: number;
  /** Whether what is told may change the answer; absent: all of it. */
  readonly concerns?: (data: unknown) => boolean;
  /** Where the answer ends, for what goes on from there; and what takes what is told, instead of a question. */
  readonly cursor?: string;
  readonly take?: (data: unknown) => void;
}

/** ms within which what is told leads to one question. */
const JOINED = 250;
/** ms between two questions while all is told: what is seen by nobody's event (a time, a forecast) changes, too. */
const FOLLOWED_INTERVAL = 60_000;
/** ms after which what was refused is followed again. */
const REFUSED = 30_000;

/**
 * Asks a question again and again while it is started: less often while that fails, not at all while the page is hidden,
 * and at once when the server answers again, the network is back, or the page is looked at again.
 *
 * While it is told of what changes the answer (`followed`) it asks when that happens, and else rarely.
 */
export class Poll implements IDisposable {
  /** ms until the next question; a change holds from the next one on. */
  interval: number;

  constructor(
    private readonly ask: () => Promise<unknown>,
    private readonly options: IPollOptions
  ) {
    this.interval = options.interval;
    const wake = () => {
      const dropped = this.isStarted && this.follow();
      if ((this.isWaiting || dropped) && !this.rests) {
        void this.refresh();
      }
    };
    this.deaf = [
      [window, ANSWERED],
      [window, 'online'],
      [document, 'visibilitychange'],
      [document, 'resume'] // of a page that the browser has put to sleep
    ].map(([target, event]) => {
      (target as EventTarget).addEventListener(event as string, wake);
      return () => (target as EventTarget).removeEventListener(event as string, wake);
    });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Begin to ask, at once; nothing where it asks already. */
  start(): void {
    if (!this.isStarted) {
      void this.refresh();
    }
  }

  /** Ask no more. */
  stop(): void {
    this.isStarted = false;
    this.isWaiting = false;
    this.due = Infinity;
    clearTimeout(this.timer);
    this.follow();
  }

  /** Follow what is to be followed at the moment, and nothing else; return whether that is something else now. */
  follow(): boolean {
    const wanted = new Map<string, IFollowed>();
    for (const one of (this.isStarted ? this.options.followed?.() : undefined) ?? []) {
      wanted.set(JSON.stringify(one.subject), one);
    }
    let changed = false;
    for (const [key, following] of this.following) {
      const one = wanted.get(key);
      if (one === undefined) {
        following.leave();
        this.following.delete(key);
        changed = true;
      } else {
        following.one = one;
      }
    }
    for (const [key, one] of wanted) {
      if (!this.following.has(key) && Date.now() >= (this.refused.get(key) ?? 0)) {
        this.begin(key, one);
        changed = true;
      }
    }
    return changed;
  }

  /** Ask within a moment, but not sooner than `pause` (ms) after the last answer. */
  soon(pause = 0): void {
    if (this.isStarted) {
      this.told ??= { time: Date.now(), pause };
      this.told.pause = Math.min(this.told.pause, pause);
      if (!this.asking) {
        this.wait();
      }
    }
  }

  /** Ask now, and go on from there; resolves when that is answered, or has failed. */
  async refresh(): Promise<void> {
    if (this._isDisposed) {
      return;
    }
    this.isStarted = true;
    if (this.asking) {
      // what is under way may not know yet of what has made somebody ask again
      this.next ??= this.asking.then(() => {
        this.next = null;
        // (it may have been stopped meanwhile)
        return this.isStarted ? this.refresh() : undefined;
      });
      return this.next;
    }
    clearTimeout(this.timer);
    this.isWaiting = false;
    this.due = Infinity;
    this.told = null;
    this.follow();
    this.asking = this.once();
    await this.asking;
  }

  dispose(): void {
    this._isDisposed = true;
    this.stop();
    this.deaf.forEach(stop => stop());
  }

  private async once(): Promise<void> {
    try {
      await this.ask();
      this.failures = 0;
    } catch {
      this.failures += 1;
    }
    this.asking = null;
    this.answeredAt = Date.now();
    if (this.isStarted && !this.next) {
      this.follow();
      const { interval, failures } = this;
      // not all pages at once, after a server was away
      const longer = failures > 0 ? interval * 2 ** Math.min(failures, 16) * (0.75 + Math.random() / 2) : interval;
      this.due = this.answeredAt + Math.min(longer, Math.max(this.options.max, interval));
      this.wait();
    }
  }

  /** Wait until it is time to ask. */
  private wait(): void {
    clearTimeout(this.timer);
    this.isWaiting = this.failures > 0;
    const { told, answeredAt } = this;
    const rarely = this.isTold ? Math.max(this.due, answeredAt + FOLLOWED_INTERVAL) : this.due;
    const soon = told ? Math.max(told.time + JOINED, answeredAt + told.pause) : Infinity;
    this.timer = setTimeout(
      () => {
        if (this.rests) {
          this.isWaiting = true;
        } else {
          void this.refresh();
        }
      },
      Math.max(0, Math.min(rarely, soon) - Date.now())
    );
  }

  private begin(key: string, one: IFollowed): void {
    const following: IFollowing = { one, isLive: false, leave: () => undefined };
    this.following.set(key, following);
    const turn = (isLive: boolean) => {
      following.isLive = isLive;
      if (this.isStarted && !this.asking && this.due < Infinity) {
        this.wait();
      }
    };
    following.leave = one.stream.follow(one.subject, one.cursor ?? null, {
      live: () => {
        turn(true);
        if (this.failures > 0) {
          this.soon();
        }
      },
      lost: () => turn(false),
      gap: () => following.one.take === undefined && this.soon(),
      data: data => {
        const { take, concerns, pause } = following.one;
        if (take) {
          take(data);
        } else if (concerns?.(data) ?? true) {
          this.soon(pause);
        }
      },
      end: refused => {
        if (refused) {
          this.refused.set(key, Date.now() + REFUSED);
          this.following.delete(key);
        }
        turn(!refused);
      }
    });
  }

  /** Whether all that changes the answer is told. */
  private get isTold(): boolean {
    const all = [...this.following.values()];
    const enough = this.options.followed?.().length ?? 0;
    return this.failures === 0 && all.length > 0 && all.length === enough && all.every(({ isLive }) => isLive);
  }

  /** Whether nobody looks. */
  private get rests(): boolean {
    return document.visibilityState === 'hidden' && !this.options.hidden?.();
  }

  private readonly deaf: (() => void)[];
  private _isDisposed = false;
  private isStarted = false;
  /** Whether the next question may be long in coming, or does not come by itself. */
  private isWaiting = false;
  private asking: Promise<void> | null = null;
  private next: Promise<void> | null = null;
  /** When it asks next by itself; ms since the epoch. */
  private due = Infinity;
  /** When it was first told of what it has not asked about, and after which pause that is to be. */
  private told: { time: number; pause: number } | null = null;
  private answeredAt = 0;
  private readonly following = new Map<string, IFollowing>();
  /** Until when what was refused is not followed. */
  private readonly refused = new Map<string, number>();
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
}

interface IFollowing {
  one: IFollowed;
  isLive: boolean;
  leave: () => void;
}

/** ms between two questions, and at most after failed ones. */
const INTERVAL = 5_000;
const MAX_INTERVAL = 30_000;

/** The answer to one question, which is asked again while somebody looks. */
export class Polled<Answer> implements IDisposable {
  /**
   * @param interval - ms between two questions
   * @param followed - what is followed, so that it is asked when something has changed
   */
  constructor(
    private readonly question: () => Promise<Answer>,
    interval = INTERVAL,
    followed: () => readonly IFollowed[] = () => []
  ) {
    this.poll = new Poll(() => this.ask(), { interval, max: MAX_INTERVAL, followed });
  }

  /** What was answered last; `null` until the first answer. */
  get answer(): Answer | null {
    return this._answer;
  }

  /** When that was, in ms since the epoch; 0 until the first answer. */
  get answeredAt(): number {
    return this._answeredAt;
  }

  /** Why the last question had no answer; empty when it had one. */
  get error(): string {
    return this._error;
  }

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  /** Ask now; resolves when answered. */
  refresh(): Promise<void> {
    return this.poll.refresh();
  }

  /** Note that the answer came into view, or went: nobody is asked while nobody looks. */
  setShown(shown: boolean): void {
    if (shown) {
      this.poll.start();
    } else {
      this.poll.stop();
    }
  }

  dispose(): void {
    this.poll.dispose();
    this.changed.clear();
  }

  private async ask(): Promise<void> {
    try {
      this._answer = await this.question();
      this._answeredAt = Date.now();
      this._error = '';
    } catch (error) {
      this._error = messageOf(error);
      throw error; // the poll then asks less often
    } finally {
      if (!this.isDisposed) {
        this.changed.emit();
      }
    }
  }

  readonly changed = new Signal();
  private readonly poll: Poll;
  private _answer: Answer | null = null;
  private _answeredAt = 0;
  private _error = '';
}

/** Return what says that the cluster or a queue has changed; nothing where that is not told. */
export function clusterChanges({ stream }: { readonly stream?: LiveStream | null }): IFollowed[] {
  return stream ? [{ stream, subject: { kind: 'changes' }, pause: INTERVAL }] : [];
}

/**
 * Return what tells of a user's jobs; nothing where that is not told.
 *
 * @param pause - ms between two questions that it leads to, at least
 * @param job - only what happens to this one
 */
export function jobEvents(
  { stream }: { readonly stream?: LiveStream | null },
  user: string,
  pause: number,
  job?: string
): IFollowed[] {
  const concerns = (events: unknown) =>
    job === undefined || (events as { job?: string }[]).some(one => one.job === job);
  return stream ? [{ stream, subject: { kind: 'events', user }, pause, concerns }] : [];
}

/** An answer that the person can change. */
export abstract class Changeable<Answer> extends Polled<Answer> {
  /** Why the last question had no answer, or what was asked for was refused; empty otherwise. */
  get error(): string {
    return this.refusal || super.error;
  }

  setShown(shown: boolean): void {
    if (shown) {
      this.refusal = '';
    }
    super.setShown(shown);
  }

  /** Do something, and ask again; return what came of it, or `undefined` where it was refused. */
  protected async attempt<Result>(action: () => Promise<Result>): Promise<Result | undefined> {
    this.refusal = '';
    let result: Result | undefined;
    try {
      result = await action();
    } catch (error) {
      this.refusal = messageOf(error);
    }
    await this.refresh();
    return result;
  }

  private refusal = '';
}

/** What was answered last, and why the last question had no answer. */
export interface IPolledAnswer<Answer> {
  readonly answer: Answer | null;
  readonly error: string;
}

/**
 * Ask again and again as long as the component is there and in view.
 *
 * @param question - a new one, by `key`, is asked at once
 * @param interval - ms between two questions
 */
export function usePolled<Answer>(
  key: string,
  question: () => Promise<Answer>,
  interval: number,
  followed: () => readonly IFollowed[] = () => []
): IPolledAnswer<Answer> {
  const isShown = useShown();
  const [answer, setAnswer] = React.useState<IPolledAnswer<Answer>>({ answer: null, error: '' });
  const asked = React.useRef({ question, followed });
  React.useEffect(() => {
    asked.current = { question, followed };
  });
  React.useEffect(() => {
    if (!isShown) {
      return undefined;
    }
    const polled = new Polled(
      () => asked.current.question(),
      interval,
      () => asked.current.followed()
    );
    polled.changed.connect(() =>
      setAnswer(before => ({ answer: polled.answer ?? before.answer, error: polled.error }))
    );
    polled.setShown(true);
    return () => polled.dispose();
  }, [key, interval, isShown]);
  return answer;
}

/** Does something once it was not asked for again for a while. */
export class Debouncer implements IDisposable {
  /** @param quiet - ms of that while */
  constructor(
    private readonly act: () => Promise<void>,
    private readonly quiet: number
  ) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Ask for it. */
  invoke(): void {
    clearTimeout(this.timer);
    if (!this._isDisposed) {
      this.timer = setTimeout(() => void this.act().catch(() => undefined), this.quiet);
    }
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this.timer);
  }

  private timer: ReturnType<typeof setTimeout> | undefined;
  private _isDisposed = false;
}

/**
 * Do something with each of many things in their order, `most` of them at once; resolves when all are done.
 *
 * A browser has six connections to a server, and what a person waits for needs one.
 */
export async function fewAtOnce<Item>(
  items: Iterable<Item>,
  most: number,
  act: (item: Item) => Promise<void>
): Promise<void> {
  const left = items[Symbol.iterator]();
  const work = async () => {
    for (let item = left.next(); !item.done; item = left.next()) {
      await act(item.value);
    }
  };
  await Promise.all(Array.from({ length: most }, work));
}
