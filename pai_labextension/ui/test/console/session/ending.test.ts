import { nullTranslator } from '@jupyterlab/translation';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { ISession } from '../../../console/data/client';
import { INoticeAction, INoticeOptions, INotices, NoticeKind } from '../../../console/kit/notices';
import { SessionModel } from '../../../console/session/notice';
import { IHubServer, SessionNotices } from '../../../console/session/ending';
import { clientOf, NotebookServer } from '../../notebookServer';

const trans = nullTranslator.load('pai_labextension');
interface IShown {
  id: string;
  message: string;
  type: string;
  actions: INoticeAction[];
}

/** Notes what JupyterLab would show now. */
class Shown implements Pick<INotices, 'notify' | 'update' | 'dismiss'> {
  shown: IShown[] = [];

  notify(message: string, type: NoticeKind, { actions = [] }: INoticeOptions): string {
    const id = String(this.count++);
    this.shown.push({ id, message, type, actions });
    return id;
  }

  update({ id, ...changes }: Parameters<INotices['update']>[0]): boolean {
    this.shown = this.shown.map(one =>
      one.id === id ? { ...one, message: changes.message, actions: changes.actions ?? [] } : one
    );
    return true;
  }

  dismiss(id: string): void {
    this.shown = this.shown.filter(one => one.id !== id);
  }

  private count = 0;
}

const SESSION: ISession = { now: 1_000, warned: false, endTime: null, why: '', mayKeep: true, messages: [] };
const WARNED = { ...SESSION, warned: true, endTime: 601_000, why: 'This session is idle.' };

describe('what is told about the session', () => {
  let server: NotebookServer;
  let model: SessionModel;
  let notifications: Shown;
  let seen = 0;
  let startedAgain = 0;
  /** What the Hub says of the server, one answer after the other and the last again and again; `Error`: it is away. */
  let hub: (IHubServer | null | Error)[] = [];
  const ENDED = { state: 'ended', kind: 'session-ended', title: '', reason: 'It was idle for an hour.', advice: '' };

  async function askHub(): Promise<IHubServer | null> {
    const said = hub.length > 1 ? hub.shift()! : hub[0]!;
    if (said instanceof Error) {
      throw said;
    }
    return said;
  }

  beforeEach(async () => {
    seen = startedAgain = 0;
    notifications = new Shown();
    server = await NotebookServer.open();
    model = new SessionModel(clientOf(server.settings));
    const remembered = { read: () => seen, write: (id: number) => void (seen = id) };
    hub = [ENDED];
    new SessionNotices(model, remembered, askHub, () => void startedAgain++, notifications, trans, 5);
  });

  afterEach(async () => {
    model.dispose();
    await server.close();
  });

  /** Have the notebook server say how the session stands. */
  async function stands(session: ISession | null, status = 502): Promise<void> {
    server.answers['GET /user/alice/pai/session'] = session ? [200, session] : [status, { message: 'away' }];
    await model.refresh().catch(() => undefined);
  }

  const told = () => notifications.shown.map(({ message, type }) => [type, message]);
  const actions = () => notifications.shown[0]?.actions ?? [];

  it('is nothing while nothing ends it', async () => {
    await stands(SESSION);
    expect(told()).toEqual([]);
    expect(model.left).toBeNull();
  });

  it('warns with the time left, once, and keeps it', async () => {
    await stands(WARNED);
    await stands(WARNED);
    expect(told()).toEqual([['warning', 'This session is idle. It ends in 10 minutes.']]);
    await stands({ ...WARNED, now: 301_000 });
    expect(told()).toEqual([['warning', 'This session is idle. It ends in 5 minutes.']]);

    server.answers['POST /user/alice/pai/session/keep'] = [200, SESSION];
    const gone = new Promise<void>(resolve => model.changed.connect(() => resolve()));
    actions()[0]!.callback(new MouseEvent('click'));
    await gone;
    await expect.poll(told).toEqual([['success', 'This session is kept.']]);
  });

  it('offers nothing where the end cannot be put off, and says why keeping failed', async () => {
    await stands({ ...WARNED, mayKeep: false });
    expect(actions()).toEqual([]);
    await stands(WARNED);
    server.answers['POST /user/alice/pai/session/keep'] = [409, { message: 'It cannot be put off.' }];
    actions()[0]!.callback(new MouseEvent('click'));
    await expect.poll(() => told().map(([, message]) => message)).toContain('It cannot be put off.');
  });

  it('says that it was ended, and why, when the Hub says so, and starts it again', async () => {
    await stands(WARNED);
    await stands(null, 424);
    await stands(null, 424);
    const said = 'This session was ended; your files are kept. It was idle for an hour.';
    await expect.poll(told).toEqual([['info', said]]);
    actions()[0]!.callback(new MouseEvent('click'));
    expect(startedAgain).toBe(1);
  });

  it('asks the Hub until it knows how the session ended', async () => {
    hub = [new Error('away'), { ...ENDED, state: 'stopping', kind: '', reason: '' }, ENDED];
    await stands(WARNED);
    await stands(null, 424);
    await expect.poll(() => told().map(([type]) => type)).toEqual(['info']);
  });

  it('takes the warning back, and says nothing, where its user stopped it', async () => {
    hub = [{ ...ENDED, kind: 'stopped', reason: '' }];
    await stands(WARNED);
    await stands(null, 424);
    await expect.poll(told).toEqual([]);
  });

  it('says no reason that it does not know', async () => {
    hub = [null];
    await stands(WARNED);
    await stands(null, 424);
    await expect.poll(told).toEqual([['info', 'This session was ended; your files are kept.']]);
  });

  it('says nothing of an end while only the connection is lost', async () => {
    await stands(WARNED);
    await stands(null);
    expect(told().map(([type]) => type)).toEqual(['warning']);
  });

  it('leaves the end of a session that was not warned to others', async () => {
    await stands(SESSION);
    await stands(null, 424);
    expect(told()).toEqual([]);
  });

  it('shows what an administrator says once', async () => {
    const messages = [{ id: 1, time: 5, sender: 'root', text: 'Back at <noon>' }];
    await stands({ ...SESSION, messages });
    await stands({ ...SESSION, messages });
    expect(told()).toEqual([['info', 'root: Back at <noon>']]);
    expect(seen).toBe(1);
  });
});
