// What this notebook server uses of what it may.

import { Client } from '../../console/data/client';

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

/** A notebook server's only task. */
const SERVER = { role: 'notebook', index: 0 };

/** Reads on and on what this server's job uses. */
export class OwnUse {
  constructor(
    private readonly client: Client,
    private readonly job: string
  ) {}

  /** Return what is used now. */
  async read(): Promise<IUse> {
    this.user ??= (await this.client.whoami()).username;
    const { gpuMemoryTotalMB, series } = await this.client.metrics(
      { username: this.user, name: this.job },
      SERVER,
      this.seen
    );
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
