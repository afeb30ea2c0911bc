// What the Hub's home says of this server: read from the page, as only the Hub knows it when the server is gone.

import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import { IHubServer } from '../console/session/ending';

/** ms that the Hub may take. */
const PATIENCE = 15_000;

/** Where the Hub is, and which of its servers this is. */
export interface IHubPlace {
  prefix: string;
  user: string;
  server: string;
}

/** Return where the Hub is; `null` where there is none. */
export function hubPlace(): IHubPlace | null {
  const prefix = PageConfig.getOption('hubPrefix');
  const user = PageConfig.getOption('hubUser');
  return prefix && user ? { prefix, user, server: PageConfig.getOption('hubServerName') } : null;
}

/** Read a server from the Hub's home; `null` where the page does not show it. */
export function serverOnPage(page: Document, { user, server }: IHubPlace): IHubServer | null {
  const list = page.getElementById('pai-servers');
  if (list?.dataset.user !== user) {
    return null; // a page of JupyterHub's own, the login, or of somebody else
  }
  const section = [...list.querySelectorAll<HTMLElement>('[data-server]')].find(one => one.dataset.server === server);
  const text = (selector: string) => section?.querySelector(selector)?.textContent?.trim() ?? '';
  return section?.dataset.state === undefined
    ? null
    : {
        state: section.dataset.state,
        kind: section.querySelector<HTMLElement>('[data-ending]')?.dataset.ending ?? '',
        title: text('[data-ending] [data-part=title]'),
        reason: text('[data-ending] [data-part=reason]'),
        advice: text('[data-ending] [data-part=advice]')
      };
}

/**
 * Ask the Hub; `null` where it does not say anything about the server. Rejects where it does not answer.
 *
 * The request is one that browsers make for pictures, which the Hub answers to pages of the same origin.
 */
export async function askHub(place: IHubPlace): Promise<IHubServer | null> {
  const answer = await fetch(URLExt.join(place.prefix, 'home'), {
    mode: 'no-cors',
    signal: AbortSignal.timeout(PATIENCE)
  });
  if (answer.status >= 500) {
    throw new Error(`${answer.status} ${answer.statusText}`);
  }
  return serverOnPage(new DOMParser().parseFromString(await answer.text(), 'text/html'), place);
}

/** Return the address of the Hub's page on which the server is started, or its start is shown. */
export function startAddress({ prefix, user, server }: IHubPlace, page: 'spawn' | 'spawn-pending'): string {
  return URLExt.join(prefix, page, encodeURIComponent(user), encodeURIComponent(server));
}

type Fetch = ServerConnection.ISettings['fetch'];

/** The header that the Hub, and each server that it starts, puts on every answer. */
const HUBS_HEADER = 'X-JupyterHub-Version';

/**
 * Return a `fetch` that fails, as without a network, where the proxy itself says 404.
 *
 * A proxy that has just been started knows no server until the Hub has told it all: JupyterLab would believe
 * that the opened folder is gone, say so in a dialog, and leave the folder.
 */
export function reachingServer(fetch: Fetch): Fetch {
  return async (...request) => {
    const answer = await fetch(...request);
    if (answer.status === 404 && !answer.headers.has(HUBS_HEADER)) {
      throw new TypeError('the proxy does not know this server (yet)');
    }
    return answer;
  };
}
