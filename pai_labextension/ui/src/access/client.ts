// The ways into a task, as the notebook server opens them: who to ask for what.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { GenericSchema, InferOutput } from 'valibot';

import { parsed } from '../answers';
import { ask, IJob, request } from '../api';
import { ConnectCheck as ICheck, ConnectInfo as IConnect, PublicKeyInfo as IPublicKey } from '../generated/types.gen';
import { vConnectCheck, vCodeServerInfo, vConnectInfo, vJobDetail, vPublicKeys } from '../generated/valibot.gen';
import { IRunningTask, ITask, pathOf, runningTasks } from './tasks';

export type {
  ConnectCheck as ICheck,
  ConnectInfo as IConnect,
  PublicKeyInfo as IPublicKey
} from '../generated/types.gen';

/** For OpenSSH, for PuTTY and WinSCP, and the half that may be shown to anybody. */
export type KeyFormat = 'openssh' | 'ppk' | 'public';

/** Asks the notebook server in the person's name; every call rejects with `ApiError` or `AnswerError`. */
export class AccessClient {
  /**
   * @param settings - the notebook server
   * @param language - of the sentences that come back, as JupyterLab names it ("zh_CN")
   */
  constructor(
    readonly settings: ServerConnection.ISettings,
    readonly language: string,
    readonly trans: TranslationBundle
  ) {}

  /** List the tasks of a job that run. */
  async tasks(job: Pick<IJob, 'username' | 'name'>): Promise<IRunningTask[]> {
    const path = `pai/api/v1/user/${encodeURIComponent(job.username)}/jobs/${encodeURIComponent(job.name)}`;
    return runningTasks(job, await this.read(vJobDetail, 'GET', path));
  }

  async connect(task: ITask): Promise<IConnect> {
    return this.read(vConnectInfo, 'GET', `pai/connect/${pathOf(task)}`);
  }

  /** Log in at a task and tell how that went. */
  async check(task: ITask): Promise<ICheck> {
    return this.read(vConnectCheck, 'POST', `pai/connect/${pathOf(task)}/check`, {});
  }

  /** Start code-server in a task; give where it is, from the browser's point of view. */
  async codeServer(task: ITask): Promise<string> {
    return this.link((await this.read(vCodeServerInfo, 'POST', `pai/connect/${pathOf(task)}/code-server`, {})).url);
  }

  /** Read the key of a job. */
  async key(task: ITask, format: KeyFormat): Promise<Blob> {
    const [user, job] = [task.user, task.job].map(encodeURIComponent);
    const path = `pai/api/v1/user/${user}/jobs/${job}/ssh/key?format=${format}`;
    return (await request(this.settings, this.language, 'GET', path)).blob();
  }

  /** List the public keys that a person has registered. */
  async publicKeys(user: string): Promise<IPublicKey[]> {
    return this.read(vPublicKeys, 'GET', keysPath(user));
  }

  /** Register a public key, as its file has it. */
  async addPublicKey(user: string, key: string): Promise<void> {
    await this.ask('POST', keysPath(user), { key });
  }

  async removePublicKey(user: string, fingerprint: string): Promise<void> {
    await this.ask('DELETE', `${keysPath(user)}/${encodeURIComponent(fingerprint)}`);
  }

  /** Return the link to a port of a task. */
  portUrl(task: ITask, label: string): string {
    return URLExt.join(this.settings.baseUrl, 'pai/ports', pathOf(task), encodeURIComponent(label)) + '/';
  }

  /** Return a link that the notebook server has told, absolute or below its own address. */
  link(url: string): string {
    return new URL(url, new URL(this.settings.baseUrl, location.href)).href;
  }

  private async read<Schema extends GenericSchema>(
    schema: Schema,
    method: string,
    path: string,
    body?: unknown
  ): Promise<InferOutput<Schema>> {
    return parsed(schema, await this.ask(method, path, body), this.trans);
  }

  private ask(method: string, path: string, body?: unknown): Promise<unknown> {
    return ask(this.settings, this.language, method, path, body);
  }
}

function keysPath(user: string): string {
  return `pai/api/v1/user/${encodeURIComponent(user)}/ssh-keys`;
}
