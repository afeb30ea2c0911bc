// What this notebook server uses, what it may use, and when it is to end.

import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';

import { parsed } from '../answers';
import { Api, ask } from '../api';
import { SessionInfo as ISession } from '../generated/types.gen';
import { vSessionInfo } from '../generated/valibot.gen';

export type { SessionInfo as ISession, SessionMessage as IMessage } from '../generated/types.gen';

/** The series of measurements that are shown. */
const SERIES = ['cpuPercent', 'memoryMB', 'gpuPercent', 'gpuMemoryMB'] as const;

/** What is used now; `null`: not known. Per cent of one processor core, and of the GPUs. */
export type IUse = Record<(typeof SERIES)[number], number | null> & {
  /** What its GPUs have. */
  gpuMemoryTotalMB: number | null;
};

/** What a server may use, as far as that is known. */
export interface ILimits {
  cpus?: number;
  memoryMB?: number;
  gpus?: number;
}

/** The role of a notebook server's only task. */
const ROLE = 'notebook';

/** Asks the Hub's service, by way of the notebook server; both calls reject with `ApiError` or `AnswerError`. */
export class SessionClient {
  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly language: string,
    private readonly trans: TranslationBundle
  ) {}

  /** Return how the session stands. */
  async session(): Promise<ISession> {
    return parsed(vSessionInfo, await ask(this.settings, this.language, 'GET', 'pai/session'), this.trans);
  }

  /** Put its end off; return how it stands then. */
  async keep(): Promise<ISession> {
    return parsed(vSessionInfo, await ask(this.settings, this.language, 'POST', 'pai/session/keep', {}), this.trans);
  }
}

/** Reads on and on what this server's job uses. */
export class OwnUse {
  constructor(
    private readonly api: Api,
    private readonly job: string
  ) {}

  /** Return what is used now. */
  async read(): Promise<IUse> {
    this.user ??= (await this.api.whoami()).username;
    const { gpuMemoryTotalMB, series } = await this.api.metrics(this.user, this.job, ROLE, 0, this.seen);
    this.use.gpuMemoryTotalMB = gpuMemoryTotalMB;
    for (const name of SERIES) {
      const [time, value] = series[name]?.at(-1) ?? [];
      if (typeof time === 'number' && typeof value === 'number') {
        this.use[name] = value;
        this.seen = Math.max(this.seen, time);
      }
    }
    return { ...this.use };
  }

  private user: string | null = null;
  /** Up to when it was read, in ms since the epoch as the scheduler has it. */
  private seen = 0;
  private readonly use: IUse = {
    cpuPercent: null,
    memoryMB: null,
    gpuPercent: null,
    gpuMemoryMB: null,
    gpuMemoryTotalMB: null
  };
}

/** Read the limits that the server extension has written into the page. */
export function readLimits(option: string): ILimits {
  try {
    const limits: unknown = JSON.parse(option);
    return typeof limits === 'object' && limits !== null ? limits : {};
  } catch {
    return {};
  }
}
