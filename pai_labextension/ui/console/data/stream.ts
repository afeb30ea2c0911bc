// What is told without being asked for: one connection of the page for all that it follows. The frames are described
// in `pai_labextension/proxy/stream.py`; what carries them (a WebSocket, a kernel's comm) is the transport's business.

/** What can be followed. */
export type Subject =
  /** What happens to a user's jobs: lists of `JobEvent`. */
  | { readonly kind: 'events'; readonly user: string }
  /** That what is free, or a queue, has changed. */
  | { readonly kind: 'changes' }
  /** What a task writes: pieces as answers that begin at `start`, with times, each byte a character. */
  | {
      readonly kind: 'log';
      readonly user: string;
      readonly job: string;
      readonly role: string;
      readonly index: number;
      readonly attempt: number;
      readonly stream: string;
    };

/** Who follows something. */
export interface IFollower {
  /** From now on all is told. */
  live(): void;
  /** Nothing is told until it is live again. */
  lost(): void;
  /** Something was not told: what is known may be old. */
  gap(): void;
  data(data: unknown): void;
  /** Nothing more will come; `refused`: it may not be followed. */
  end(refused: boolean): void;
}

/** One connection that carries frames. */
export interface IChannel {
  send(frame: object): void;
  close(): void;
}

/** What comes of a connection. */
export interface IHeard {
  /** It is there: frames may be sent. */
  open(): void;
  frame(frame: unknown): void;
  /** It was refused, or broke; never after `close`. */
  closed(): void;
}

/** ms until a connection is made again: at first, and at most; and for which one stays without a subscription. */
const SOON = 1_000;
const LATE = 30_000;
const IDLE = 10_000;
/** ms without a sign of life (there is one each 20 s) after which a connection counts as broken. */
const SILENCE = 60_000;

interface ISubscription {
  readonly id: number;
  readonly subject: Subject;
  readonly followers: Set<IFollower>;
  /** After what was told last; `null`: nothing was. */
  cursor: string | null;
  state: 'waiting' | 'live' | 'ended' | 'refused';
}

interface IFrame {
  readonly type: 'live' | 'data' | 'gap' | 'lost' | 'end' | 'ping';
  readonly id?: number;
  readonly cursor?: string | null;
  readonly data?: unknown;
  readonly error?: object;
}

/** Keeps the page's one connection while something is followed, and goes on after a cut where it was. */
export class LiveStream {
  constructor(private readonly connect: (heard: IHeard) => IChannel) {
    const wake = () => this.channel === null && this.delay > 0 && this.subscriptions.size > 0 && this.open();
    window.addEventListener('online', wake);
    // (what is broken then may be noticed minutes later)
    window.addEventListener('offline', () => this.channel !== null && this.broken());
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && wake());
  }

  /**
   * Follow a subject; the function that comes back ends that.
   *
   * @param cursor - after what to begin; `null`: now, and who follows the same shares what comes
   */
  follow(subject: Subject, cursor: string | null, follower: IFollower): () => void {
    const shared = cursor === null ? this.sharing(subject) : undefined;
    const subscription: ISubscription = shared ?? {
      id: (this.last += 1),
      subject,
      followers: new Set(),
      cursor,
      state: 'waiting'
    };
    subscription.followers.add(follower);
    if (shared === undefined) {
      this.subscriptions.set(subscription.id, subscription);
      clearTimeout(this.idle);
      if (this.isOpen) {
        this.subscribe(subscription);
      } else if (this.channel === null && this.delay === 0) {
        this.open();
      }
    } else if (shared.state === 'live') {
      follower.live();
    } else if (shared.state !== 'waiting') {
      follower.end(shared.state === 'refused');
    }
    return () => this.leave(subscription, follower);
  }

  private sharing(subject: Subject): ISubscription | undefined {
    const wanted = JSON.stringify(subject);
    // (a log is not shared: each reads on from where it is)
    return [...this.subscriptions.values()].find(
      one => one.subject.kind !== 'log' && JSON.stringify(one.subject) === wanted
    );
  }

  private leave(subscription: ISubscription, follower: IFollower): void {
    subscription.followers.delete(follower);
    if (subscription.followers.size > 0 || !this.subscriptions.delete(subscription.id)) {
      return;
    }
    if (this.isOpen && subscription.state !== 'ended' && subscription.state !== 'refused') {
      this.channel?.send({ type: 'unsub', id: subscription.id });
    }
    if (this.subscriptions.size === 0) {
      clearTimeout(this.idle);
      this.idle = setTimeout(() => this.shut(), IDLE);
    }
  }

  private open(): void {
    clearTimeout(this.again);
    clearTimeout(this.idle);
    let channel: IChannel | null = null;
    const isIt = () => channel === null || channel === this.channel;
    channel = this.channel = this.connect({
      open: () => {
        if (isIt()) {
          this.isOpen = true;
          this.listen();
          this.subscriptions.forEach(one => this.subscribe(one));
        }
      },
      frame: frame => {
        if (isIt()) {
          this.listen();
          this.take(frame as IFrame);
        }
      },
      closed: () => {
        if (isIt()) {
          this.broken();
        }
      }
    });
  }

  private subscribe({ id, subject, cursor }: ISubscription): void {
    this.channel?.send({ type: 'sub', id, subject, cursor });
  }

  private take({ type, id, cursor, data, error }: IFrame): void {
    const subscription = id === undefined ? undefined : this.subscriptions.get(id);
    // (what comes for one that was left meanwhile is for nobody)
    if (subscription === undefined) {
      return;
    }
    this.delay = 0;
    if (typeof cursor === 'string') {
      subscription.cursor = cursor;
    }
    const tell = (act: (follower: IFollower) => void) => [...subscription.followers].forEach(act);
    switch (type) {
      case 'live':
        subscription.state = 'live';
        return tell(one => one.live());
      case 'data':
        return tell(one => one.data(data));
      case 'gap':
        return tell(one => one.gap());
      case 'lost':
        subscription.state = 'waiting';
        return tell(one => one.lost());
      case 'end':
        subscription.state = error === undefined ? 'ended' : 'refused';
        return tell(one => one.end(error !== undefined));
    }
  }

  /** Take the connection for broken unless a sign of life comes in time. */
  private listen(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      this.channel?.close();
      this.broken();
    }, SILENCE);
  }

  private broken(): void {
    this.shut();
    // not all pages at once, after a server was away
    this.delay = Math.min(LATE, this.delay === 0 ? SOON : this.delay * 2);
    if (this.subscriptions.size > 0) {
      this.again = setTimeout(() => this.open(), this.delay * (0.5 + Math.random()));
    }
    for (const one of this.subscriptions.values()) {
      // a new connection may be a new login
      one.state = 'waiting';
      [...one.followers].forEach(follower => follower.lost());
    }
  }

  private shut(): void {
    clearTimeout(this.silence);
    clearTimeout(this.again);
    const { channel } = this;
    this.channel = null;
    this.isOpen = false;
    channel?.close();
  }

  private readonly subscriptions = new Map<number, ISubscription>();
  private last = 0;
  private channel: IChannel | null = null;
  private isOpen = false;
  /** ms of the last pause before a connection; 0: it is there, or was. */
  private delay = 0;
  private again: ReturnType<typeof setTimeout> | undefined;
  private idle: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
}

/** Carry frames by a WebSocket. */
export function overWebSocket(socket: WebSocket, heard: IHeard): IChannel {
  let isClosed = false;
  socket.onopen = () => heard.open();
  socket.onmessage = ({ data }: MessageEvent<string>) => heard.frame(JSON.parse(data));
  socket.onclose = () => {
    if (!isClosed) {
      isClosed = true;
      heard.closed();
    }
  };
  return {
    send: frame => socket.send(JSON.stringify(frame)),
    close: () => {
      isClosed = true;
      socket.close();
    }
  };
}
