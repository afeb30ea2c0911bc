// The plugin about this notebook server itself: its use in the status bar, the end of its session.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { Api } from '../api';
import { askHub, hubPlace, IHubPlace, startAddress } from '../ended/hub';
import { Polled } from '../polled';
import { OwnUse, readLimits, SessionClient } from './client';
import { SessionModel } from './model';
import { ISeen, SessionNotices } from './notices';
import { SessionStatus } from './status';

const DOMAIN = 'pai_labextension';
/** ms between two looks at the use, which is measured every ten seconds. */
const EVERY = 10_000;

export const sessionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:session',
  description: 'Shows what this notebook server uses, and says before it ends.',
  autoStart: true,
  optional: [IStatusBar, ITranslator],
  activate: (app: JupyterFrontEnd, statusBar: IStatusBar | null, translator: ITranslator | null) => {
    const job = PageConfig.getOption('paiJobName');
    if (!job) {
      return; // this server is no job
    }
    const known = translator ?? nullTranslator;
    const trans = known.load(DOMAIN);
    const settings = app.serviceManager.serverSettings;
    const limits = readLimits(PageConfig.getOption('paiLimits'));
    let session: SessionModel | null = null;
    if (PageConfig.getOption('paiSessions')) {
      session = new SessionModel(new SessionClient(settings, known.languageCode, trans));
      const place = hubPlace();
      const ask = () => (place ? askHub(place) : Promise.resolve(null));
      new SessionNotices(session, seenOf(job), ask, place && startAgain(place), Notification.manager, trans);
    }
    const own = new OwnUse(new Api(settings, known.languageCode, trans), job);
    const use = new Polled('own-use', () => own.read(), EVERY);
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
