// Tells an answer of this server from one of the proxy before it: that one is no answer.

import { ServerConnection } from '@jupyterlab/services';

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
