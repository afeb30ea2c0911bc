// What JupyterLab tells by itself: of the ends of one's jobs as its settings say, and of this notebook server.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import * as React from 'react';

import { IJob } from '../console/data/client';
import { IJobsModel } from '../console/data/jobs';
import { Polled } from '../console/data/store';
import { BrowserNotices, EndedNotices, isWanted } from '../console/jobs/ended';
import { showError } from '../console/kit/dialog';
import { ISeen, SessionNotices } from '../console/session/ending';
import { OwnUse, readLimits, SessionModel, SessionStatus } from '../console/session/notice';
import { askHub, hubPlace, IHubPlace, startAddress } from './hub';
import { ILabHost, JobsToken } from './host';
import { Mount } from './mount';
import { PLUGIN, read, translated } from './noticeSettings';

const COMMAND = 'pai:browser-notifications';

export const endedJobsPlugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Tells that a job has ended.',
  autoStart: true,
  requires: [ILabHost, JobsToken],
  optional: [ICommandPalette, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    host: ILabHost,
    jobs: IJobsModel,
    palette: ICommandPalette | null,
    registry: ISettingRegistry | null
  ) => {
    const { trans } = host;
    const browser = new BrowserNotices(host);
    let settings: ISettingRegistry.ISettings | null = null;
    const wanted = (job: IJob) => isWanted(read(settings), job);
    new EndedNotices(host, jobs, { wanted, inBrowser: browser }, Notification.manager);
    if (registry === null) {
      return;
    }
    const follow = () => jobs.setHeardHidden(read(settings).browser && browser.permission === 'granted');
    registry.transform(PLUGIN, { fetch: plugin => ({ ...plugin, schema: translated(plugin.schema, trans) }) });
    void registry.load(PLUGIN).then(loaded => {
      settings = loaded;
      let before = read(loaded).browser;
      follow();
      loaded.changed.connect(() => {
        const now = read(loaded).browser;
        if (now && !before) {
          void allow(host, browser).then(follow);
        }
        before = now;
        follow();
      });
      addCommand(app, host, palette, browser, loaded);
    });
  }
};

/** Let the browser ask; where it does not, or the person has said no, say what to do. */
async function allow({ trans }: Pick<ILabHost, 'trans'>, browser: BrowserNotices): Promise<void> {
  if ((await browser.ask()) === 'granted') {
    return;
  }
  const label = trans.__('Allow');
  // some browsers ask only after a click in the page itself, and settings are saved a while after theirs
  const actions = browser.permission === 'default' ? [{ label, callback: () => void allow({ trans }, browser) }] : [];
  Notification.warning(browser.obstacle(), { autoClose: false, actions });
}

function addCommand(
  { commands }: JupyterFrontEnd,
  host: ILabHost,
  palette: ICommandPalette | null,
  browser: BrowserNotices,
  settings: ISettingRegistry.ISettings
): void {
  const { trans } = host;
  const isOn = () => read(settings).browser && browser.permission === 'granted';
  commands.addCommand(COMMAND, {
    label: trans.__('Notifications of the browser when jobs end'),
    describedBy: { args: { type: 'object', properties: {} } },
    isToggled: isOn,
    execute: async () => {
      const on = !isOn();
      if (on && (await browser.ask()) !== 'granted') {
        await showError(host, trans.__('No notifications of the browser'), browser.obstacle());
        return;
      }
      await settings.set('browser', on);
    }
  });
  settings.changed.connect(() => commands.notifyCommandChanged(COMMAND));
  palette?.addItem({ command: COMMAND, category: trans.__('PAI') });
}

/** ms between two looks at the use, which is measured every ten seconds. */
const EVERY = 10_000;

export const sessionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:session',
  description: 'Shows what this notebook server uses, and says before it ends.',
  autoStart: true,
  requires: [ILabHost],
  optional: [IStatusBar],
  activate: (app: JupyterFrontEnd, host: ILabHost, statusBar: IStatusBar | null) => {
    const { client, trans } = host;
    const job = PageConfig.getOption('paiJobName');
    if (!job) {
      return; // this server is no job
    }
    const limits = readLimits(PageConfig.getOption('paiLimits'));
    let session: SessionModel | null = null;
    if (PageConfig.getOption('paiSessions')) {
      session = new SessionModel(client);
      const place = hubPlace();
      const ask = () => (place ? askHub(place) : Promise.resolve(null));
      new SessionNotices(session, seenOf(job), ask, place && startAgain(place), Notification.manager, trans);
    }
    const own = new OwnUse(client, job);
    const use = new Polled(() => own.read(), EVERY);
    const item = new Mount(host, () => <SessionStatus use={use} session={session} limits={limits} />);
    item.addClass('pai-SessionStatus');
    statusBar?.registerStatusItem('pai-labextension:session', {
      item,
      align: 'right',
      rank: 110,
      // in a narrow window JupyterLab hides items of the usual priority
      priority: 1
    });
    void app.restored.then(() => {
      session?.start();
      use.setShown(true);
    });
  }
};

/** Remember in this browser which messages of a job were seen; in private windows until the page is left. */
function seenOf(job: string): ISeen {
  const key = `pai-labextension:messages-of-${job}`;
  let seen = 0;
  return {
    read: () => {
      try {
        seen = Math.max(seen, Number(localStorage.getItem(key)) || 0);
      } catch {
        // a browser that keeps nothing
      }
      return seen;
    },
    write: id => {
      seen = id;
      try {
        localStorage.setItem(key, String(id));
      } catch {
        // as above
      }
    }
  };
}

/** Open the Hub's page that starts this server. */
function startAgain(place: IHubPlace): () => void {
  return () => location.assign(startAddress(place, 'spawn'));
}
