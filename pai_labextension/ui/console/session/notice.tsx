// This notebook server: what it uses of what it may, and how long its session may still run.

import * as React from 'react';

import { Client, ISession } from '../data/client';
import { ApiError } from '../data/errors';
import { IDisposable, Polled, Signal, useSignal } from '../data/store';
import { ITranslation, useHost } from '../host';

/** ms between two questions. */
const EVERY = 15_000;
/** What the Hub answers in the place of a server that does not run. */
const NOT_RUNNING = 424;

export class SessionModel implements IDisposable {
  constructor(private readonly client: Client) {
    this.polled = new Polled(() => this.ask(), EVERY);
    this.polled.changed.connect(() => this.take(this.polled.error ? null : this.polled.answer));
  }

  /** How it stood last; `null` before the first answer. */
  get session(): ISession | null {
    return this._session;
  }

  /** Why it was not told the last time; empty when it was. */
  get error(): string {
    return this.polled.error;
  }

  /** Whether the Hub said that this server does not run any more. */
  get stopped(): boolean {
    return this._stopped;
  }

  /** ms until it ends if nothing changes; `null`: not by itself, or not known. */
  get left(): number | null {
    return this.end === null ? null : this.end - Date.now();
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.polled.isDisposed;
  }

  /** Begin to ask. */
  start(): void {
    this.polled.setShown(true);
  }

  /** Ask now. */
  async refresh(): Promise<void> {
    await this.polled.refresh();
  }

  /** Put the end off. */
  async keep(): Promise<void> {
    this.take(await this.client.keepSession());
  }

  dispose(): void {
    this.polled.dispose();
    this.changed.clear();
  }

  private async ask(): Promise<ISession> {
    try {
      const session = await this.client.session();
      this._stopped = false;
      return session;
    } catch (error) {
      this._stopped = error instanceof ApiError && error.status === NOT_RUNNING;
      throw error;
    }
  }

  private take(session: ISession | null): void {
    if (session !== null) {
      this._session = session;
      // the clocks of the two machines may differ
      this.end = session.endTime === null ? null : Date.now() + session.endTime - session.now;
    }
    this.changed.emit();
  }

  private readonly polled: Polled<ISession>;
  private _session: ISession | null = null;
  private _stopped = false;
  private end: number | null = null;
}

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

const GB = 1024;

/** Say memory in GB, of small amounts with one digit after the point. */
export function gigabytes(megabytes: number): string {
  const number = megabytes / GB;
  return number < 10 ? number.toFixed(1).replace(/\.0$/, '') : number.toFixed(0);
}

/** Say how long something takes, in minutes, or hours and minutes, or days and hours. */
export function duration(ms: number, trans: ITranslation): string {
  const minutes = Math.max(0, Math.round(ms / 60_000));
  if (minutes < 60) {
    return trans._n('%1 minute', '%1 minutes', minutes);
  }
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? trans.__('%1 h %2 min', hours, minutes % 60)
    : trans.__('%1 d %2 h', Math.floor(hours / 24), hours % 24);
}

/** Return what is used, short; a part that is not known is left out. */
export function describeUse(use: IUse | null, limits: ILimits, trans: ITranslation): string {
  const parts: string[] = [];
  if (use?.cpuPercent !== undefined && use.cpuPercent !== null) {
    parts.push(trans.__('CPU %1 %', Math.round(use.cpuPercent / (limits.cpus ?? 1))));
  }
  if (use?.memoryMB !== undefined && use.memoryMB !== null) {
    parts.push(
      limits.memoryMB
        ? trans.__('%1 of %2 GB', gigabytes(use.memoryMB), gigabytes(limits.memoryMB))
        : trans.__('%1 GB', gigabytes(use.memoryMB))
    );
  }
  if (limits.gpus && use?.gpuPercent !== undefined && use.gpuPercent !== null) {
    parts.push(trans.__('GPU %1 %', Math.round(use.gpuPercent)));
    if (use.gpuMemoryMB !== null) {
      parts.push(
        use.gpuMemoryTotalMB
          ? trans.__('%1 of %2 GB on the GPU', gigabytes(use.gpuMemoryMB), gigabytes(use.gpuMemoryTotalMB))
          : trans.__('%1 GB on the GPU', gigabytes(use.gpuMemoryMB))
      );
    }
  }
  return parts.join(' · ');
}

/** Return how long the session may still run, short; empty where nothing ends it. */
export function leftText(left: number | null, trans: ITranslation): string {
  return left === null ? '' : trans.__('%1 left', duration(left, trans));
}

/** Explain what the status bar says. */
export function explanation(
  use: IUse | null,
  limits: ILimits,
  session: ISession | null,
  left: number | null,
  trans: ITranslation
): string {
  const lines = [trans.__('What this notebook server uses of what it may use.')];
  if (limits.cpus) {
    lines.push(trans._n('It has %1 CPU: 100 % is all of it.', 'It has %1 CPUs: 100 % is all of them.', limits.cpus));
  }
  if (limits.gpus && use?.gpuPercent === null) {
    lines.push(trans.__('Its GPUs do not tell how much they are used.'));
  }
  if (session?.why) {
    lines.push(session.why);
  }
  if (left !== null) {
    const time = duration(left, trans);
    lines.push(
      session?.mayKeep ? trans.__('It ends in %1 unless it is kept.', time) : trans.__('It ends in %1.', time)
    );
  }
  return lines.join('\n');
}

/** Shows what is known, for a status bar; nothing where nothing is. `session` null: nobody watches over this server. */
export function SessionStatus(props: {
  use: Polled<IUse>;
  session: SessionModel | null;
  limits: ILimits;
}): React.ReactElement {
  const { limits } = props;
  const { trans } = useHost();
  useSignal(props.use.changed);
  useSignal(props.session?.changed ?? props.use.changed);
  const use = props.use.error ? null : props.use.answer;
  const session = props.session?.error ? null : (props.session?.session ?? null);
  const left = session ? props.session!.left : null;
  const used = describeUse(use, limits, trans);
  const ends = leftText(left, trans);
  return (
    <span
      className={session?.warned ? 'pai-SessionStatus-text pai-mod-warned' : 'pai-SessionStatus-text'}
      title={used || ends ? explanation(use, limits, session, left, trans) : ''}
    >
      <span className="pai-SessionStatus-use">{used}</span>
      <span className="pai-SessionStatus-left">{used && ends ? ` · ${ends}` : ends}</span>
    </span>
  );
}
