// The jobs that a job waits for (`extras.after`) as a line of text, and other values as inputs show them.

import { isObject } from './text';

/** Read "prepare, fetch:ended" as a job has it; `undefined` for a blank text. What is wrong, the scheduler names. */
export function afterOf(text: string): unknown {
  const entries = text
    .split(',')
    .map(entry => entry.trim())
    .filter(Boolean)
    .map(entry => {
      const [job, ...on] = entry.split(':');
      return on.length > 0 ? { job: job!.trim(), on: on.join(':').trim() } : entry;
    });
  return entries.length > 0 ? entries : undefined;
}

/** Write the jobs that a job waits for in a line. */
export function afterText(value: unknown): string {
  return Array.isArray(value) ? value.map(entryText).join(', ') : shown(value);
}

/** Write a value as an input shows it; what is no text as JSON. */
export function shown(value: unknown): string {
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

function entryText(entry: unknown): string {
  if (isObject(entry) && typeof entry.job === 'string') {
    return entry.on === undefined ? entry.job : `${entry.job}:${shown(entry.on)}`;
  }
  return shown(entry);
}
