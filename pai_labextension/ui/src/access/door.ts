// The ways into a task, as the notebook server opens them: who to ask for what.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import { ask, IJob, request } from '../api';
import { IJobDetail, IRunningTask, ITask, pathOf, runningTasks } from './tasks';

/** The SSH gateway; `host` is `null` where it is the one at which JupyterLab was reached. */
export interface IGateway {
  readonly host: string | null;
  readonly port: number;
  /** As `ssh-ed25519 …`. */
  readonly hostKey: string;
}

/** What there is to know about reaching a task. */
export interface IConnect extends ITask {
  /** By which one logs in at the gateway. */
  readonly login: string;
  readonly gateway: IGateway | null;
  /** The task's own SSH server, where the administrator publishes it. */
  readonly published: { readonly host: string; readonly port: number } | null;
  /** Why there is no way in; `null` where there is one. */
  readonly off: string | null;
  readonly workDir: string;
  /** Path of the Python that commands in the task find; empty where there is none. */
  readonly python: string;
  readonly ports: readonly { readonly label: string; readonly port: number; readonly url: string }[];
  /** False: without a container's isolation. */
  readonly isolated: boolean;
}

/** What trying a connection came to. */
export interface ICheck {
  readonly ok: boolean;
  readonly message: string;
  readonly milliseconds: number;
}

/** A public key that opens every task of its owner. Time in ms since the epoch. */
export interface IPublicKey {
  readonly fingerprint: string;
  readonly type: string;
  readonly comment: string;
  readonly addedTime: number;
}

/** For OpenSSH, for PuTTY and WinSCP, and the half that may be shown to anybody. */
export type KeyFormat = 'openssh' | 'ppk' | 'public';

/** Asks the notebook server in the person's name; every call rejects with `ApiError`. */
export class AccessDoor {
  /**
   * @param settings - the notebook server
   * @param language - of the sentences that come back, as JupyterLab names it ("zh_CN")
   */
  constructor(
    readonly settings: ServerConnection.ISettings,
    readonly language: string
  ) {}

  /** List the tasks of a job that run. */
  async tasks(job: Pick<IJob, 'username' | 'name'>): Promise<IRunningTask[]> {
    const path = `pai/api/v1/user/${encodeURIComponent(job.username)}/jobs/${encodeURIComponent(job.name)}`;
    return runningTasks(job, (await this.ask('GET', path)) as IJobDetail);
  }

  async connect(task: ITask): Promise<IConnect> {
    return (await this.ask('GET', `pai/connect/${pathOf(task)}`)) as IConnect;
  }

  /** Log in at a task and tell how that went. */
  async check(task: ITask): Promise<ICheck> {
    return (await this.ask('POST', `pai/connect/${pathOf(task)}/check`, {})) as ICheck;
  }

  /** Start code-server in a task; give where it is, from the browser's point of view. */
  async codeServer(task: ITask): Promise<string> {
    return this.link(((await this.ask('POST', `pai/connect/${pathOf(task)}/code-server`, {})) as { url: string }).url);
  }

  /** Read the key of a job. */
  async key(task: ITask, format: KeyFormat): Promise<Blob> {
    const [user, job] = [task.user, task.job].map(encodeURIComponent);
    const path = `pai/api/v1/user/${user}/jobs/${job}/ssh/key?format=${format}`;
    return (await request(this.settings, this.language, 'GET', path)).blob();
  }

  /** List the public keys that a person has registered. */
  async publicKeys(user: string): Promise<IPublicKey[]> {
    return (await this.ask('GET', keysPath(user))) as IPublicKey[];
  }

  /** Register a public key, as its file has it. */
  async addPublicKey(user: string, key: string): Promise<void> {
    await this.ask('POST', keysPath(user), { key });
  }

  async removePublicKey(user: string, fingerprint: string): Promise<void> {
    await this.ask('DELETE', `${keysPath(user)}/${encodeURIComponent(fingerprint)}`);
  }

  /** Give the link to a port of a task. */
  portUrl(task: ITask, label: string): string {
    return URLExt.join(this.settings.baseUrl, 'pai/ports', pathOf(task), encodeURIComponent(label)) + '/';
  }

  /** Give a link that the notebook server has told, absolute or below its own address. */
  link(url: string): string {
    return new URL(url, new URL(this.settings.baseUrl, location.href)).href;
  }

  private ask(method: string, path: string, body?: unknown): Promise<unknown> {
    return ask(this.settings, this.language, method, path, body);
  }
}

function keysPath(user: string): string {
  return `pai/api/v1/user/${encodeURIComponent(user)}/ssh-keys`;
}
