// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Debouncer, fewAtOnce, Poll, Polled, Signal, tellAnswered } from '../../console/data/store';

const HOUR = 3_600_000;

function hide(hidden: boolean): void {
  Object.defineProperty(document, 'visibilityState', { configurable: true, value: hidden ? 'hidden' : 'visible' });
  document.dispatchEvent(new Event('visibilitychange'));
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  hide(false);
  vi.useRealTimers();
});

describe('a signal', () => {
  it('tells those who listen, until they do not want to hear of it', () => {
    const signal = new Signal<string>();
    const heard: string[] = [];
    const listener = (news: string) => void heard.push(news);
    const [stopFirst] = [signal.connect(listener), signal.connect(listener)];
    signal.emit('a');
    stopFirst();
    signal.emit('b');
    expect(heard).toEqual(['a', 'a', 'b']);
    signal.clear();
    signal.emit('c');
    expect(heard).toHaveLength(3);
  });

  it('tells who listens when it began to tell, whatever they do then', () => {
    const signal = new Signal();
    let late = 0;
    signal.connect(() => void signal.connect(() => (late += 1)));
    signal.emit();
    expect(late).toBe(0);
    signal.emit();
    expect(late).toBe(1);
  });
});

describe('a poll', () => {
  let poll: Poll;
  let asked: number;
  let fails: boolean;

  function make(options: Partial<{ interval: number; max: number; hidden: () => boolean }> = {}): void {
    asked = 0;
    fails = false;
    poll = new Poll(
      async () => {
        asked += 1;
        if (fails) {
          throw new Error('away');
        }
      },
      { interval: 1_000, max: 8_000, ...options }
    );
  }
  afterEach(() => poll.dispose());

  it('asks at once, then again and again, until it is stopped', async () => {
    make();
    poll.start();
    expect(asked).toBe(1);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked).toBe(4);
    poll.start();
    expect(asked).toBe(4);
    poll.stop();
    await vi.advanceTimersByTimeAsync(3_000);
    tellAnswered();
    expect(asked).toBe(4);
  });

  it('asks less often while nobody answers, and as before from the next answer on', async () => {
    make();
    fails = true;
    poll.start();
    await vi.advanceTimersByTimeAsync(60_000);
    // 1 + 2 + 4 + 8 + 8 … seconds, each a quarter more or less
    expect(asked).toBeGreaterThan(6);
    expect(asked).toBeLessThan(13);
    fails = false;
    await poll.refresh();
    const before = asked;
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked).toBe(before + 3);
  });

  it('asks again for who wants to know while a question is under way, once for all of them', async () => {
    make();
    let answer = () => undefined as void;
    const slow = new Poll(
      () => {
        asked += 1;
        return new Promise<void>(resolve => (answer = resolve));
      },
      { interval: HOUR, max: HOUR }
    );
    slow.start();
    const both = [slow.refresh(), slow.refresh()];
    answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toBe(2);
    answer();
    await Promise.all(both);
    expect(asked).toBe(2);
    slow.dispose();
  });

  it('asks no more once it was stopped, whoever wanted to know while a question was under way', async () => {
    let answer = () => undefined as void;
    make();
    const slow = new Poll(
      () => {
        asked += 1;
        return new Promise<void>(resolve => (answer = resolve));
      },
      { interval: 1_000, max: 1_000 }
    );
    slow.start();
    const wanted = slow.refresh();
    slow.stop();
    answer();
    await wanted;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toBe(1);
    slow.dispose();
  });

  it.each([
    ['the server answers', tellAnswered],
    ['the network is back', () => window.dispatchEvent(new Event('online'))],
    ['somebody looks again', () => document.dispatchEvent(new Event('visibilitychange'))]
  ])('that failed asks at once when %s', async (_, happens) => {
    make({ interval: HOUR, max: HOUR });
    fails = true;
    await poll.refresh();
    happens();
    expect(asked).toBe(2);
    await vi.advanceTimersByTimeAsync(0);
    poll.dispose();
    happens();
    expect(asked).toBe(2);
  });

  it('rests while the page is hidden, unless it is wanted then too', async () => {
    make();
    poll.start();
    hide(true);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toBe(1);
    hide(false);
    expect(asked).toBe(2);
    poll.dispose();
    make({ hidden: () => true });
    poll.start();
    hide(true);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked).toBe(4);
  });
});

describe('an answer that is asked for again', () => {
  it('stays while the next question has none, and says why', async () => {
    let fails = false;
    const polled = new Polled(async () => {
      if (fails) {
        throw new Error('away');
      }
      return 'here';
    });
    await polled.refresh();
    expect([polled.answer, polled.error]).toEqual(['here', '']);
    fails = true;
    await polled.refresh();
    expect([polled.answer, polled.error]).toEqual(['here', 'away']);
    polled.dispose();
  });
});

describe('what waits for quiet', () => {
  it('is done once, when nobody has asked for a while', async () => {
    let done = 0;
    const debouncer = new Debouncer(async () => void (done += 1), 100);
    debouncer.invoke();
    await vi.advanceTimersByTimeAsync(60);
    debouncer.invoke();
    await vi.advanceTimersByTimeAsync(60);
    expect(done).toBe(0);
    await vi.advanceTimersByTimeAsync(40);
    expect(done).toBe(1);
    debouncer.invoke();
    debouncer.dispose();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(done).toBe(1);
  });
});

describe('many things', () => {
  it('are done in their order, and never more than that at once', async () => {
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const all = fewAtOnce([1, 2, 3], 2, async item => {
      begun.push(item);
      await new Promise<void>(resolve => ends.push(resolve));
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(begun).toEqual([1, 2]);
    ends[1]!();
    await vi.advanceTimersByTimeAsync(0);
    expect(begun).toEqual([1, 2, 3]);
    ends[0]!();
    ends[2]!();
    await all;
  });

  it('may be none', async () => {
    await expect(fewAtOnce([], 2, () => Promise.reject(new Error('called')))).resolves.toBeUndefined();
  });
});
