import * as React from 'react';
import { createRoot } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ISchedule } from '../../../console/data/client';
import { HostProvider, IHost, Place } from '../../../console/host';
import { SchedulesModel, SchedulesView } from '../../../console/jobs/schedules';
import { clientOf, NotebookServer, trans, user } from '../../notebookServer';

const nightly: ISchedule = {
  ...{ name: 'nightly', username: 'alice', cron: '30 2 * * *', timeZone: 'UTC', overlap: 'skip' },
  ...{ paused: false, createdTime: 1, nextTime: 2, lastRun: null }
};
const path = 'user/alice/schedules/nightly';

describe('SchedulesModel', () => {
  let server: NotebookServer;
  let model: SchedulesModel;

  beforeEach(async () => {
    server = await NotebookServer.open();
    server.answers['GET user'] = [200, user()];
    server.answers['GET user/alice/schedules'] = [200, [nightly]];
    model = new SchedulesModel(clientOf(server.settings));
  });

  afterEach(async () => {
    model.dispose();
    await server.close();
  });

  it('lists what the person has', async () => {
    await model.refresh();
    expect(model.answer).toEqual([nightly]);
  });

  it('lists nothing where the scheduler knows of none', async () => {
    server.answers['GET user/alice/schedules'] = [404, { code: 'NoApiError', message: 'There is no such thing here.' }];
    await model.refresh();
    expect([model.answer, model.error]).toEqual([[], '']);
  });

  it('asks again after each change', async () => {
    server.answers[`PUT ${path}/state`] = [200, { ...nightly, paused: true }];
    server.answers[`POST ${path}/runs`] = [202, { job: 'nightly-1' }];
    server.answers[`DELETE ${path}`] = [204, null];
    await model.pause(nightly, true);
    expect(await model.run(nightly)).toBe('nightly-1');
    await model.delete(nightly);
    const list = 'GET user/alice/schedules';
    expect(server.requests.filter(asked => asked !== 'GET user')).toEqual([
      ...[`PUT ${path}/state`, list, `POST ${path}/runs`, list, `DELETE ${path}`, list]
    ]);
  });

  it('tells why something was refused, until somebody looks anew', async () => {
    server.answers[`POST ${path}/runs`] = [403, { code: 'ForbiddenUserError', message: 'Not open to you.' }];
    expect(await model.run(nightly)).toBeUndefined();
    expect(model.error).toBe('Not open to you.');
    model.setShown(true);
    expect(model.error).toBe('');
  });
});

describe('SchedulesView', () => {
  let server: NotebookServer;
  const drawn = createRoot(document.body.appendChild(document.createElement('div')));
  const opened: Place[] = [];
  const places = { open: (place: Place) => opened.push(place) };
  const host = { trans, language: 'en', places, root: document.body } as unknown as IHost;

  beforeEach(async () => {
    server = await NotebookServer.open();
    server.answers['GET user'] = [200, user()];
    const lastRun = { time: 1, job: 'nightly-1', outcome: 'submitted' as const, message: '' };
    server.answers['GET user/alice/schedules'] = [200, [{ ...nightly, lastRun }]];
    server.answers[`DELETE ${path}`] = [204, null];
    // (jsdom has no dialogs)
    HTMLDialogElement.prototype.showModal = () => undefined;
    HTMLDialogElement.prototype.close = function () {
      this.dispatchEvent(new Event('close'));
    };
    drawn.render(
      <HostProvider value={host}>
        <SchedulesView schedules={new SchedulesModel(clientOf(server.settings))} onStarted={() => undefined} />
      </HostProvider>
    );
  });

  afterEach(async () => {
    drawn.render(null);
    await server.close();
  });

  async function press(label: string, within = 'body'): Promise<void> {
    const found = () => [...document.querySelectorAll<HTMLElement>(`${within} :is(button, [role=button])`)];
    const named = (button: HTMLElement) => [button.getAttribute('aria-label'), button.textContent].includes(label);
    const button = await vi.waitUntil(() => found().find(named));
    button.click();
  }

  it('opens what a schedule has submitted last', async () => {
    await press('nightly-1');
    expect(opened).toEqual([{ page: 'job', job: { username: 'alice', name: 'nightly-1' } }]);
  });

  it('deletes a schedule only once that was asked', async () => {
    const deleted = () => server.requests.includes(`DELETE ${path}`);
    await press('Delete schedule “nightly”');
    await press('Keep it');
    await vi.waitUntil(() => document.querySelector('dialog') === null);
    expect(deleted()).toBe(false);
    await press('Delete schedule “nightly”');
    await press('Delete', 'dialog');
    await vi.waitUntil(deleted);
  });
});
