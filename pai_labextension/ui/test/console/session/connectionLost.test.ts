import { describe, expect, it, vi } from 'vitest';

import { ConnectionLost, IWays } from '../../../console/session/ending';
import { IHubServer } from '../../../console/session/ending';
import { trans } from '../../notebookServer';

const running: IHubServer = { state: 'running', kind: '', title: '', reason: '', advice: '' };

/** Answers each question with the next, and with the last from then on. */
function inTurn<T>(first: T, ...others: T[]): () => Promise<T> {
  let answer = first;
  return async () => {
    const now = answer;
    answer = others.shift() ?? answer;
    return now;
  };
}

/** What a person has in front of them. */
class Page {
  warning = '';
  readonly news: string[] = [];
  readonly leave = vi.fn();
  readonly confirm = vi.fn(inTurn(true));

  ways(some: Partial<IWays>): IWays {
    return {
      askHub: inTurn<IHubServer | null>(running),
      isBack: inTurn(false),
      warn: message => void (this.warning = message),
      unwarn: () => void (this.warning = ''),
      cheer: message => this.news.push(message),
      confirm: this.confirm,
      leave: this.leave,
      ...some
    };
  }
}

describe('a lost connection', () => {
  it('is said once, with that the server runs on, until it answers again', async () => {
    const page = new Page();
    const seen: string[] = [];
    const back = inTurn(false, false, true);
    const isBack = () => {
      seen.push(page.warning);
      return back();
    };
    const lost = new ConnectionLost(page.ways({ isBack }), trans, 1);
    await Promise.all([lost.tell(), lost.tell()]);
    expect(seen[0]).toBe('');
    expect(seen[1]).toContain('Your server runs on');
    expect(seen.slice(1)).toEqual([seen[1], seen[1]]);
    expect(page.warning).toBe('');
    expect(page.news).toEqual(['The server answers again.']);
  });

  it('is said in the same way where the Hub is away, too', async () => {
    const page = new Page();
    const askHub = vi.fn(() => Promise.reject(new Error('away')));
    await new ConnectionLost(page.ways({ askHub, isBack: inTurn(false, true) }), trans, 1).tell();
    expect(askHub).toHaveBeenCalledOnce();
    expect(page.confirm).not.toHaveBeenCalled();
    expect(page.news).toEqual(['The server answers again.']);
  });

  it('is nothing to speak of where the server answers', async () => {
    const page = new Page();
    await new ConnectionLost(page.ways({ isBack: inTurn(true) }), trans, 1).tell();
    expect([page.warning, ...page.news]).toEqual(['']);
  });

  it.each([true, false])('is the end where the Hub says so, with its reason; started again: %s', async again => {
    const page = new Page();
    page.confirm.mockResolvedValue(again);
    const ended = { state: 'ended', kind: 'out-of-memory', title: 'It was ended.', reason: '', advice: 'Choose more.' };
    await new ConnectionLost(page.ways({ askHub: inTurn<IHubServer | null>(running, ended) }), trans, 1).tell();
    expect(page.confirm).toHaveBeenCalledWith(expect.objectContaining({ text: 'It was ended.\n\nChoose more.' }));
    expect(page.leave.mock.calls).toEqual(again ? [['spawn']] : []);
    expect(page.warning).toBe('');
  });

  it('waits with the server that is started again elsewhere', async () => {
    const page = new Page();
    const warn = vi.fn();
    const askHub = inTurn<IHubServer | null>({ ...running, state: 'waiting' });
    await new ConnectionLost(page.ways({ askHub, warn, isBack: inTurn(false, true) }), trans, 1).tell();
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('started again elsewhere'));
  });
});
