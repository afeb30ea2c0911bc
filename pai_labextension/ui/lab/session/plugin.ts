// The plugin about this notebook server itself: its use in the status bar, the end of its session.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { IStatusBar } from '@jupyterlab/statusbar';

import { Polled } from '../../console/data/store';
import { askHub, hubPlace, IHubPlace, startAddress } from '../ended/hub';
import { ILabHost } from '../host';
import { OwnUse, readLimits } from './use';
import { SessionModel } from './model';
import { ISeen, SessionNotices } from './notices';
import { SessionStatus } from './status';

/** ms between two looks at the use, which is measured every ten seconds. */
const EVERY = 10_000;

export const sessionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:session',
  description: 'Shows what this notebook server uses, and says before it ends.',
  autoStart: true,
  requires: [ILabHost],
  optional: [IStatusBar],
  activate: (app: JupyterFrontEnd, { client, trans }: ILabHost, statusBar: IStatusBar | null) => {
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
    statusBar?.registerStatusItem('pai-labextension:session', {
      item: new SessionStatus(use, session, limits, trans),
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
