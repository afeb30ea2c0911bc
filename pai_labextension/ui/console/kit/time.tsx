// Times as the clock of the person in front of the browser shows them (the zone is where the pointer rests), durations.

import * as React from 'react';

import { ITranslation, useShown } from '../host';

/** How much of a time is written: the day, day and minutes, day and seconds, or the clock alone. */
export type TimeForm = 'day' | 'minutes' | 'seconds' | 'clock';

export const FORMS: Record<TimeForm, Intl.DateTimeFormatOptions> = {
  day: { dateStyle: 'medium' },
  minutes: { dateStyle: 'medium', timeStyle: 'short' },
  seconds: { dateStyle: 'medium', timeStyle: 'medium' },
  clock: { timeStyle: 'medium' }
};
const FULL: Intl.DateTimeFormatOptions = { dateStyle: 'full', timeStyle: 'full' };

/** To make one takes longer than all else that a row of a list needs. */
const writers = new Map<string, Intl.DateTimeFormat>();

/** Write a time as the person's clock shows it. */
export function localText(time: Date, language: string, form: TimeForm): string {
  return written(time, language, FORMS[form]);
}

/** Write a time with its zone. */
export function inFull(time: Date, language: string): string {
  return written(time, language, FULL);
}

function written(time: Date, language: string, options: Intl.DateTimeFormatOptions): string {
  // (the offset: a writer keeps the zone that it was made in, and the person may travel)
  const key = [language, options.dateStyle, options.timeStyle, time.getTimezoneOffset()].join();
  const writer = writers.get(key) ?? new Intl.DateTimeFormat(language, options);
  writers.set(key, writer);
  return writer.format(time);
}

/** A time, with its zone where the pointer rests. */
export function LocalTime(props: { time: Date; language: string; form: TimeForm }): React.ReactElement {
  const { time, language, form } = props;
  return (
    <time dateTime={time.toISOString()} title={inFull(time, language)}>
      {localText(time, language, form)}
    </time>
  );
}

/** Units of time by how many seconds they are, the longest first. */
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60]
] as const;

/** Say how long ago something was, in one unit, as people of that language do ("this minute", "yesterday"). */
export function agoText(time: Date, now: number, language: string): string {
  const seconds = Math.max(0, (now - time.getTime()) / 1000);
  const [unit, size] = UNITS.find(([, each]) => seconds >= each) ?? UNITS[2];
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  return format.format(-Math.floor(seconds / size), unit);
}

/** ms between two looks at the clock. */
const TICK = 30_000;

function eachTick(look: () => void): () => void {
  const timer = setInterval(look, TICK);
  return () => clearInterval(timer);
}

/** How long ago something was, as the clock goes on; when exactly, where the pointer rests. */
export function Ago({ time, language }: { time: Date; language: string }): React.ReactElement {
  const ticks = React.useSyncExternalStore(eachTick, () => Math.ceil(Date.now() / TICK));
  return (
    <time dateTime={time.toISOString()} title={inFull(time, language)}>
      {agoText(time, ticks * TICK, language)}
    </time>
  );
}

/** Return the time (ms since the epoch), anew each second while this is in view. */
export function useNow(): number {
  const isShown = useShown();
  const [now, setNow] = React.useState(() => Date.now());
  React.useEffect(() => {
    const timer = isShown ? setInterval(() => setNow(Date.now()), 1000) : undefined;
    return () => clearInterval(timer);
  }, [isShown]);
  return now;
}

/** Say how long something took, in two units at most. */
export function durationWords(ms: number, trans: ITranslation): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [days, hours, minutes] = [86_400, 3600, 60].map(unit => Math.floor(seconds / unit)) as [number, number, number];
  if (days > 0) {
    return trans.__('%1 d %2 h', days, hours % 24);
  }
  if (hours > 0) {
    return trans.__('%1 h %2 min', hours, minutes % 60);
  }
  return minutes > 0 ? trans.__('%1 min %2 s', minutes, seconds % 60) : trans.__('%1 s', seconds);
}
