// When a file runs again and again: as people choose it, as cron has it, and in words.

import { ITranslation } from '../host';

/** What is chosen from; `cron`: an expression that somebody writes. */
export const KINDS = ['daily', 'weekdays', 'weekly', 'hourly', 'cron'] as const;
export type Kind = (typeof KINDS)[number];

export interface IRhythm {
  readonly kind: Kind;
  /** "02:30"; of `hourly` the minutes count alone. */
  readonly time: string;
  /** 0 is Sunday, as in cron. */
  readonly day: number;
  readonly expression: string;
}

/** When a file is to run, as it is sent. */
export interface IRunSchedule {
  readonly cron: string;
  readonly timeZone: string;
  readonly overlap: 'skip' | 'allow';
}

/** What is offered at first: when few are at work. */
export const NIGHTLY: IRhythm = { kind: 'daily', time: '02:30', day: 1, expression: '30 2 * * *' };

/** Return the zone of this browser. */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
}

/** Write what was chosen as cron does. */
export function cronOf({ kind, time, day, expression }: IRhythm): string {
  const [hour = 0, minute = 0] = time.split(':').map(Number);
  switch (kind) {
    case 'daily':
      return `${minute} ${hour} * * *`;
    case 'weekdays':
      return `${minute} ${hour} * * 1-5`;
    case 'weekly':
      return `${minute} ${hour} * * ${day}`;
    case 'hourly':
      return `${minute} * * * *`;
    case 'cron':
      return expression.trim().replace(/\s+/g, ' ');
  }
}

/** Read what `cronOf` has written; anything else is an expression of one's own. */
export function rhythmOf(cron: string): IRhythm {
  const found = /^(\d{1,2}) (\d{1,2}|\*) \* \* (\*|1-5|[0-6])$/.exec(cron);
  const own: IRhythm = { ...NIGHTLY, kind: 'cron', expression: cron };
  if (found === null) {
    return own;
  }
  const [, minute = '', hour = '', day = ''] = found;
  if (hour === '*') {
    return day === '*' ? { ...own, kind: 'hourly', time: `00:${minute.padStart(2, '0')}` } : own;
  }
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;
  if (day === '*' || day === '1-5') {
    return { ...own, kind: day === '*' ? 'daily' : 'weekdays', time };
  }
  return { ...own, kind: 'weekly', time, day: Number(day) };
}

/** Return the name of a day of the week, 0 is Sunday. */
export function dayName(day: number, language: string): string {
  // the first of January 2023 was a Sunday
  return new Date(Date.UTC(2023, 0, 1 + day)).toLocaleDateString(language, { weekday: 'long', timeZone: 'UTC' });
}

/** Say when something runs; the zone is named where it is not the browser's. */
export function inWords(cron: string, zone: string, language: string, trans: ITranslation): string {
  const { kind, time, day } = rhythmOf(cron);
  const words: Record<Kind, () => string> = {
    daily: () => trans.__('Every day at %1', time),
    weekdays: () => trans.__('On week days at %1', time),
    weekly: () => trans.__('Every %1 at %2', dayName(day, language), time),
    hourly: () => trans.__('Every hour at minute %1', Number(time.slice(3))),
    cron: () => cron
  };
  return zone === ownZone() ? words[kind]() : `${words[kind]()} (${zone})`;
}
