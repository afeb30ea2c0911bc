// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { jobEvents, Poll } from '../../../console/data/store';
import { IChannel, IHeard, LiveStream, Subject } from '../../../console/data/stream';
import { LogReader } from '../../../console/job/log/reader';
import { LogWindow } from '../../../console/job/log/window';
import { PlayedLog } from '../job/playedLog';

const EVENTS: Subject = { kind: 'events', user: 'alice' };

/** Connections that a test plays. */
class PlayedServer {
  readonly sent: Record<string, unknown>[] = [];
  readonly connections: IHeard[] = [];

  readonly connect = (heard: IHeard): IChannel => {
    this.connections.push(heard);
    return { send: frame => void this.sent.push(frame as Record<string, unknown>), close: () => undefined };
  };

  get last(): IHeard {
    return this.connections.at(-1)!;
  }

  tell(frame: object): void {
    this.last.frame(frame);
  }
}

function noted() {
  const heard: unknown[] = [];
  return {
    heard,
    live: () => void heard.push('live'),
    lost: () => void heard.push('lost'),
    gap: () => void heard.push('gap'),
    data: (data: unknown) => void heard.push(data),
    end: (refused: boolean) => void heard.push(refused ? 'refused' : 'end')
  };
}

let server: PlayedServer;
let stream: LiveStream;

beforeEach(() => {
  vi.useFakeTimers();
  server = new PlayedServer();
  stream = new LiveStream(server.connect);
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the stream of a page', () => {
  it('is one connection, and one subscription for all who follow the same', () => {
    const [one, other, third] = [noted(), noted(), noted()];
    const leave = stream.follow(EVENTS, null, one);
    const leaveOther = stream.follow(EVENTS, null, other);
    server.last.open();
    expect(server.sent).toEqual([{ type: 'sub', id: 1, subject: EVENTS, cursor: null }]);
    server.tell({ type: 'gap', id: 1, cursor: '5' });
    server.tell({ type: 'live', id: 1, cursor: '5' });
    server.tell({ type: 'data', id: 1, cursor: '6', data: ['news'] });
    const leaveThird = stream.follow(EVENTS, null, third);
    expect([one.heard, other.heard, third.heard]).toEqual([
      ['gap', 'live', ['news']],
      ['gap', 'live', ['news']],
      ['live']
    ]);
    leave();
    leaveOther();
    expect(server.sent).toHaveLength(1);
    leaveThird();
    expect(server.sent.at(-1)).toEqual({ type: 'unsub', id: 1 });
    expect(server.connections).toHaveLength(1);
  });

  it('goes on after a cut where it was, later and later while nobody answers', () => {
    const one = noted();
    stream.follow(EVENTS, null, one);
    server.last.open();
    server.tell({ type: 'live', id: 1, cursor: '5' });
    server.tell({ type: 'data', id: 1, cursor: '9', data: [] });
    server.last.closed();
    expect(one.heard.at(-1)).toBe('lost');
    vi.advanceTimersByTime(1_500);
    expect(server.connections).toHaveLength(2);
    server.last.open();
    expect(server.sent.at(-1)).toEqual({ type: 'sub', id: 1, subject: EVENTS, cursor: '9' });
    for (let tries = 0; tries < 8; tries += 1) {
      server.last.closed();
      vi.advanceTimersByTime(45_000);
    }
    expect(server.connections.length).toBeLessThan(30);
    const before = server.connections.length;
    window.dispatchEvent(new Event('online'));
    expect(server.connections.length).toBeGreaterThanOrEqual(before);
  });

  it('counts as broken when there is no sign of life', () => {
    const one = noted();
    stream.follow(EVENTS, null, one);
    server.last.open();
    server.tell({ type: 'live', id: 1, cursor: '5' });
    vi.advanceTimersByTime(50_000);
    server.tell({ type: 'ping' });
    vi.advanceTimersByTime(50_000);
    expect(one.heard).toEqual(['live']);
    vi.advanceTimersByTime(11_000);
    expect(one.heard).toEqual(['live', 'lost']);
  });

  it('is closed when nobody follows anything for a while', () => {
    stream.follow(EVENTS, null, noted())();
    server.last.open();
    vi.advanceTimersByTime(11_000);
    stream.follow(EVENTS, null, noted());
    expect(server.connections).toHaveLength(2);
  });
});

describe('a poll that is told of changes', () => {
  let asked: number;
  let poll: Poll;

  beforeEach(async () => {
    asked = 0;
    poll = new Poll(() => Promise.resolve((asked += 1)), {
      interval: 2_000,
      max: 30_000,
      followed: () => jobEvents({ stream }, 'alice', 1_000, 'train')
    });
    poll.start();
    await vi.advanceTimersByTimeAsync(0);
  });
  afterEach(() => poll.dispose());

  it('asks again and again until it is told, and from then on when it is told', async () => {
    await vi.advanceTimersByTimeAsync(4_100);
    expect(asked).toBe(3);
    server.last.open();
    server.tell({ type: 'gap', id: 1, cursor: '5' });
    server.tell({ type: 'live', id: 1, cursor: '5' });
    await vi.advanceTimersByTimeAsync(300);
    expect(asked).toBe(4);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(asked).toBe(4);
    server.tell({ type: 'data', id: 1, cursor: '6', data: [{ job: 'another' }] });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked).toBe(4);
    for (let cursor = 7; cursor < 27; cursor += 1) {
      server.tell({ type: 'data', id: 1, cursor: String(cursor), data: [{ job: 'train' }] });
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toBe(5);
    server.tell({ type: 'data', id: 1, cursor: '30', data: [{ job: 'train' }] });
    await vi.advanceTimersByTimeAsync(500);
    expect(asked).toBe(5);
    await vi.advanceTimersByTimeAsync(600);
    expect(asked).toBe(6);
  });

  it('asks again by itself when nothing is told any more, and follows nothing once it is stopped', async () => {
    server.last.open();
    server.tell({ type: 'live', id: 1, cursor: '5' });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toBe(1);
    server.tell({ type: 'lost', id: 1 });
    await vi.advanceTimersByTimeAsync(4_100);
    expect(asked).toBe(4);
    server.tell({ type: 'live', id: 1 });
    poll.stop();
    expect(server.sent.at(-1)).toEqual({ type: 'unsub', id: 1 });
    await vi.advanceTimersByTimeAsync(100_000);
    expect(asked).toBe(4);
  });

  it('asks as before where it is refused to follow', async () => {
    server.last.open();
    server.tell({ type: 'end', id: 1, error: { status: 429 } });
    await vi.advanceTimersByTimeAsync(4_100);
    expect(asked).toBe(3);
  });
});

describe('a log whose end is told', () => {
  const piece = (start: number, text: string) => ({ start, text: `2026-01-02T03:04:05.678Z ${text}` });

  it('goes on without a question: lines, the rest of a line, what it knows already, and after a gap', async () => {
    vi.useRealTimers();
    const log = new PlayedLog('one\ntwo\n');
    const reader = new LogReader(log, 0);
    const window = new LogWindow([reader]);
    await window.toEnd();
    const texts = () => window.lines.map(({ text }) => text);
    const asked = log.questions;
    expect(await window.take(0, reader.told(piece(8, 'thr')))).toBe(true);
    expect(await window.take(0, reader.told(piece(11, 'ee \u00c3\u00b6\n')))).toBe(true);
    expect(texts()).toEqual(['one', 'two', 'three ö']);
    expect(await window.take(0, reader.told(piece(11, 'ee \u00c3\u00b6\n')))).toBe(false);
    expect(window.ends).toEqual([17]);
    expect(await window.take(0, reader.told(piece(900, 'half\n2026-01-02T03:04:05.678Z whole\n')))).toBe(true);
    expect(texts()).toEqual(['whole']);
    expect(window.ends).toEqual([911]);
    expect(log.questions).toBe(asked);
  });
});
