// A widget of a notebook as the place where the console is mounted: its kernel, asked over the widget's comm.

import { Client } from '../console/data/client';
import { ApiError, UNREACHABLE } from '../console/data/errors';
import { NO_BODY } from '../console/data/speaking';
import { Signal } from '../console/data/store';
import {
  addressOf,
  carried,
  IHost,
  INavigator,
  IQuestion,
  ITranslation,
  ITransport,
  pathOf,
  Place,
  Query
} from '../console/host';

/** A model of anywidget's. */
export interface IWidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, listener: (content: never, buffers: DataView<ArrayBuffer>[]) => void): void;
  off(event: string, listener: (content: never, buffers: DataView<ArrayBuffer>[]) => void): void;
  send(content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[]): void;
}

/** Asks the kernel for a file of ours. */
export type Asset = (name: string) => Promise<DataView<ArrayBuffer>>;
/** Ends what is drawn. */
export type View = () => void;

/** What the kernel has written of itself and of what is shown. */
export interface IOptions {
  readonly language: string;
  readonly ownServer: string;
  /** Where the console is on the web, with a slash at its end; empty: that is not known. */
  readonly console: string;
  readonly name?: string;
  readonly user?: string | null;
  readonly states?: readonly string[];
  readonly limit?: number;
  readonly path?: string | null;
  readonly isNew?: boolean;
  readonly hasCode?: boolean;
}

/** A frame of the kernel's; `widgets/channel.py` says what they mean. */
interface IFrame {
  readonly id: string;
  readonly kind: 'taken' | 'answer' | 'data' | 'end' | 'ack';
  readonly status: number;
  readonly headers: [string, string][];
  readonly end?: boolean;
  readonly broken?: string;
}

/** ms without a sign of the kernel until it counts as busy. */
const QUIET = 2_000;
/** Bytes of a body that go in one message, and messages that may be without their `ack`. */
const PART = 256 * 1024;
const UNCONFIRMED = 2;

type Hear = (frame: IFrame, bytes: Uint8Array<ArrayBuffer>) => void;

/** Asks the kernel, which asks the scheduler with its own token. */
export class CommTransport implements ITransport {
  constructor(
    private readonly model: IWidgetModel,
    private readonly options: IOptions,
    private readonly trans: ITranslation
  ) {
    model.on('msg:custom', this.hear);
  }

  /** Told when the kernel does not answer because a cell runs, and when it does again. */
  readonly busy = new Signal<boolean>();
  isBusy = false;

  async request(question: IQuestion): Promise<Response> {
    const { method, path, query = {}, signal, onUpload } = question;
    const { headers, body } = carried(question, this.options.language);
    const content = body === null ? null : typeof body === 'string' ? new Blob([body]) : body;
    const inParts = content !== null && content.size > PART;
    const buffers = content && !inParts ? [await content.arrayBuffer()] : [];
    signal?.throwIfAborted();
    if (content && !('Content-Length' in headers)) {
      headers['Content-Length'] = String(content.size);
    }
    const given = Object.fromEntries(
      Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
    );
    const id = crypto.randomUUID();
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(id, resolve, (kind, bytes) => this.send(id, kind, bytes ? [bytes] : []));
      const sending = inParts ? new Sending(content, exchange.send, onUpload) : null;
      const timer = setTimeout(() => this.setBusy(true), QUIET);
      this.open.set(id, (frame, bytes) => {
        clearTimeout(timer);
        if (frame.kind === 'ack') {
          sending?.confirmed();
        } else if (exchange.hear(frame, bytes)) {
          this.open.delete(id);
          if (frame.kind === 'answer' && content) {
            onUpload?.(content.size);
          }
        }
      });
      signal?.addEventListener('abort', () => {
        if (this.open.delete(id)) {
          clearTimeout(timer);
          this.send(id, 'cancel');
          exchange.fail();
          reject(new DOMException('cancelled', 'AbortError'));
        }
      });
      const kind = content === null ? 'none' : inParts ? 'parts' : 'whole';
      try {
        this.model.send({ id, kind: 'request', method, path, query: given, headers, body: kind }, undefined, buffers);
      } catch {
        clearTimeout(timer);
        this.open.delete(id);
        const { trans } = this;
        reject(new ApiError(0, UNREACHABLE, trans.__('The kernel does not answer. Your jobs go on.')));
        return;
      }
      sending?.begin();
    });
  }

  href(path: readonly string[], query?: Query): string {
    return this.options.console && this.options.console + addressOf(path, query);
  }

  resolve(link: string): string {
    return this.options.console ? new URL(link, this.options.console).href : link;
  }

  private send(id: string, kind: string, buffers: ArrayBuffer[] = []): void {
    this.model.send({ id, kind }, undefined, buffers);
  }

  private readonly hear = (frame: IFrame, buffers: DataView<ArrayBuffer>[]): void => {
    const hear = this.open.get(frame.id);
    if (hear) {
      this.setBusy(false);
      const [view] = buffers;
      hear(frame, view ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : new Uint8Array());
    }
  };

  private setBusy(busy: boolean): void {
    if (busy !== this.isBusy) {
      this.isBusy = busy;
      this.busy.emit(busy);
    }
  }

  private readonly open = new Map<string, Hear>();
}

/** An answer on its way. */
class Exchange {
  constructor(
    readonly id: string,
    private readonly resolve: (answer: Response) => void,
    readonly send: (kind: 'data' | 'end' | 'ack' | 'cancel', bytes?: ArrayBuffer) => void
  ) {}

  /** Take a frame; return whether it is the last one. */
  hear(frame: IFrame, bytes: Uint8Array<ArrayBuffer>): boolean {
    if (frame.kind === 'answer') {
      const { status, headers } = frame;
      const none = NO_BODY.includes(status);
      const body = none ? null : frame.end ? bytes : this.following(bytes);
      this.resolve(new Response(body, { status, headers }));
      return frame.end === true;
    }
    if (frame.kind === 'data') {
      this.rest?.enqueue(bytes);
      this.send('ack');
    } else if (frame.kind === 'end') {
      if (frame.broken) {
        this.fail(frame.broken);
      } else {
        this.rest?.close();
      }
      return true;
    }
    return false;
  }

  /** End an answer whose rest does not come. */
  fail(reason = 'cancelled'): void {
    this.rest?.error(new TypeError(reason));
  }

  private following(first: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new ReadableStream({
      start: rest => {
        this.rest = rest;
        if (first.length > 0) {
          rest.enqueue(first);
        }
      },
      cancel: () => this.send('cancel')
    });
  }

  private rest: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | null = null;
}

/** A body that goes in parts, few of them at a time. */
class Sending {
  constructor(
    private readonly content: Blob,
    private readonly send: Exchange['send'],
    private readonly onUpload: ((bytes: number) => void) | undefined
  ) {}

  begin(): void {
    for (let part = 0; part < UNCONFIRMED; part += 1) {
      this.next();
    }
  }

  confirmed(): void {
    this.arrived = Math.min(this.arrived + PART, this.content.size);
    this.onUpload?.(this.arrived);
    this.next();
  }

  private next(): void {
    const { offset, content } = this;
    if (offset < content.size) {
      this.offset += PART;
      // (one after the other, whatever each takes to be read)
      this.reading = this.reading.then(async () => {
        this.send('data', await content.slice(offset, offset + PART).arrayBuffer());
        if (offset + PART >= content.size) {
          this.send('end');
        }
      });
    }
  }

  private offset = 0;
  private arrived = 0;
  private reading: Promise<void> = Promise.resolve();
}

/** Pages that a widget shows in place of its own. */
const HERE: readonly Place['page'][] = ['job', 'jobs', 'storage'];

/** Leads to what can be shown here; all else is a page of the console on the web, where its address is known. */
export class WidgetPlaces implements INavigator {
  constructor(
    private readonly own: Place,
    private readonly console: string,
    private readonly shown: (place: Place) => boolean = () => false
  ) {
    this.place = own;
  }

  readonly changed = new Signal();
  place: Place;

  /** Whether something else than the widget's own is shown. */
  get isAway(): boolean {
    return this.place !== this.own;
  }

  has(page: Place['page']): boolean {
    return HERE.includes(page) || this.console !== '';
  }

  href(place: Place): string | null {
    return this.console && this.console + pathOf(place);
  }

  open(place: Place): void {
    if (this.shown(place)) {
      return;
    }
    const address = this.href(place);
    if (place.page === this.own.page || HERE.includes(place.page)) {
      this.place = place;
      this.changed.emit();
    } else if (address) {
      window.open(address, '_blank', 'noopener');
    }
  }

  /** Return to what the widget is for. */
  goBack(): void {
    this.place = this.own;
    this.changed.emit();
  }
}

/** Make the host of a widget, but for where its dialogs are: each view of it has its own. */
export function widgetHost(
  transport: CommTransport,
  trans: ITranslation,
  options: IOptions,
  places: INavigator
): Omit<IHost, 'root'> {
  return {
    transport,
    client: new Client(transport, trans),
    trans,
    language: options.language,
    facts: { ownServer: options.ownServer, storageRoot: '', hasPorts: options.console !== '', isAdministrator: false },
    places
  };
}
