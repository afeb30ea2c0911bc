// JupyterLab as the place where the console is mounted: its server, its language.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Token } from '@lumino/coreutils';

import { Client, IJobName } from '../console/data/client';
import { IJobsModel } from '../console/data/jobs';
import { sendTold, Speaking, xsrf } from '../console/data/speaking';
import { tellAnswered } from '../console/data/store';
import { IChannel, IHeard, overWebSocket } from '../console/data/stream';
import { addressOf, carried, IHost, IQuestion, ITranslation, ITransport, Place, Query } from '../console/host';
import { Banner } from './banner';

/** Where our routes are, below the notebook server's address. */
export const ROUTES = 'pai';
const FORBIDDEN = 403;

/** What all our plugins share. */
export interface ILabHost extends IHost {
  readonly transport: LabTransport;
  readonly trans: TranslationBundle;
}

export const ILabHost = new Token<ILabHost>('pai-labextension:ILabHost', 'The way to the notebook server.');

export const hostPlugin: JupyterFrontEndPlugin<ILabHost> = {
  id: 'pai-labextension:host',
  description: 'Asks the notebook server in the language of the person in front of it.',
  autoStart: true,
  optional: [ITranslator],
  provides: ILabHost,
  activate: (app: JupyterFrontEnd, translator: ITranslator | null) => {
    const known = translator ?? nullTranslator;
    const trans = known.load('pai_labextension');
    // (JupyterLab writes zh_CN where the browser wants zh-CN)
    const language = known.languageCode.replace('_', '-');
    const banner = new Banner();
    const transport = new LabTransport(app.serviceManager.serverSettings, language, trans, message =>
      banner.say(message)
    );
    return {
      transport,
      client: new Client(transport, trans),
      trans,
      language,
      // (written by the server extension)
      facts: {
        ownServer: PageConfig.getOption('paiJobName'),
        storageRoot: PageConfig.getOption('paiStorageUri'),
        hasPorts: true,
        isAdministrator: false
      },
      places: { open: place => void open(app.commands, place), has: () => true, href: () => null },
      root: document.body
    };
  }
};

export const JobsToken = new Token<IJobsModel>('pai-labextension:IJobsModel', 'The jobs of the person in front of it.');

/** Show a place by the command that does. */
function open(commands: CommandRegistry, place: Place): Promise<unknown> {
  switch (place.page) {
    case 'job':
      return commands.execute('pai:open-job', argumentsOf(place.job));
    case 'submit':
      return commands.execute('pai:new-job', place.from ? { from: argumentsOf(place.from) } : {});
    case 'terminal':
    case 'connect': {
      const task = { user: place.job.username, job: place.job.name, ...(place.task ? { task: place.task } : {}) };
      return commands.execute(place.page === 'terminal' ? 'pai:open-terminal' : 'pai:connect', task);
    }
    case 'storage':
      return commands.execute('pai:open-storage', { path: place.path });
    default:
      return commands.execute('pai:show-jobs', { page: place.page });
  }
}

/** Return a job as our commands take it. */
export function argumentsOf({ username, name }: IJobName): { user: string; name: string } {
  return { user: username, name };
}

/** Asks the notebook server as JupyterLab itself does, and says in a sentence why there is no answer. */
export class LabTransport implements ITransport {
  /**
   * @param language - of the sentences that come back, as browsers name it
   * @param show - shows that the login has expired; `null`: it has not any more
   */
  constructor(
    readonly settings: ServerConnection.ISettings,
    private readonly language: string,
    trans: ITranslation,
    show: (message: string | null) => void = () => undefined
  ) {
    this.speaking = new Speaking(
      { isLoggedIn: () => this.isLoggedIn(), show, answered: tellAnswered },
      {
        away: trans.__('Your notebook server does not answer. Your jobs go on; this page asks again by itself.'),
        lost: trans.__(
          'Your notebook server does not answer, and may not have got this. Try again when it answers; what you have typed stays here.'
        ),
        loginExpired: trans.__(
          'Your login has expired. Log in again in another tab of this browser: this page goes on by itself then, and keeps what you have typed.'
        )
      }
    );
  }

  async request(question: IQuestion): Promise<Response> {
    const { method, path, query, onUpload } = question;
    const url = this.href(path, query);
    const { headers, body } = carried(question, this.language);
    const { token } = this.settings;
    const known = { 'X-XSRFToken': xsrf(), ...(token ? { Authorization: `token ${token}` } : {}) };
    return this.speaking.ask(question, signal =>
      onUpload
        ? sendTold(url, method, { ...headers, ...known }, body, onUpload, signal)
        : ServerConnection.makeRequest(url, { method, headers, body, signal: signal ?? null }, this.settings)
    );
  }

  href(path: readonly string[], query?: Query): string {
    return URLExt.join(this.settings.baseUrl, ROUTES) + '/' + addressOf(path, query);
  }

  resolve(link: string): string {
    return new URL(link, new URL(this.settings.baseUrl, location.href)).href;
  }

  connect(heard: IHeard): IChannel {
    const { wsUrl, token, appendToken, WebSocket } = this.settings;
    const query = appendToken && token ? `?token=${encodeURIComponent(token)}` : '';
    return overWebSocket(new WebSocket(URLExt.join(wsUrl, ROUTES, 'stream') + query), heard);
  }

  private async isLoggedIn(): Promise<boolean> {
    const me = URLExt.join(this.settings.baseUrl, 'api/me');
    return (await ServerConnection.makeRequest(me, {}, this.settings)).status !== FORBIDDEN;
  }

  private readonly speaking: Speaking;
}
