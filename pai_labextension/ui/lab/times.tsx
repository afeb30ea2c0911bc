// Times as the clock of the person in front of the browser shows them; the zone is where the pointer rests.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';

/** How much of a time is written: the day, day and minutes, day and seconds, or the clock alone. */
export type TimeForm = 'day' | 'minutes' | 'seconds' | 'clock';

const FORMS: Record<TimeForm, Intl.DateTimeFormatOptions> = {
  day: { dateStyle: 'medium' },
  minutes: { dateStyle: 'medium', timeStyle: 'short' },
  seconds: { dateStyle: 'medium', timeStyle: 'medium' },
  clock: { timeStyle: 'medium' }
};
const FULL: Intl.DateTimeFormatOptions = { dateStyle: 'full', timeStyle: 'full' };

/** To make one takes longer than all else that a row of a list needs. */
const writers = new Map<string, Intl.DateTimeFormat>();

/** Where a widget of the kernel's has written a time: ms since the epoch, and in `data-pai-form` its form. */
const WRITTEN = 'data-pai-time';

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

/** Write the times anew that a widget has written: the kernel's clock may be in another zone than the person's. */
export function writeLocally(root: Element, language: string): void {
  const found = root.hasAttribute(WRITTEN) ? [root] : [];
  for (const element of [...found, ...root.querySelectorAll(`[${WRITTEN}]`)]) {
    const time = new Date(Number(element.getAttribute(WRITTEN)));
    if (isNaN(time.getTime())) {
      continue;
    }
    const form = element.getAttribute('data-pai-form') ?? '';
    element.textContent = localText(time, language, form in FORMS ? (form as TimeForm) : 'seconds');
    if (element instanceof HTMLElement) {
      element.title = inFull(time, language);
    }
  }
}

/** Write the times below `root` locally, now and whenever widgets show others. */
export function watchTimes(root: Element, language: string): MutationObserver {
  const observer = new MutationObserver(changes => {
    for (const change of changes) {
      for (const node of change.addedNodes) {
        // text that is written here is no element
        if (node instanceof Element) {
          writeLocally(node, language);
        }
      }
    }
  });
  observer.observe(root, { childList: true, subtree: true });
  writeLocally(root, language);
  return observer;
}

export const timesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:times',
  description: "Shows the times of the widgets as the person's own clock does.",
  autoStart: true,
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, translator: ITranslator | null) => {
    // (JupyterLab writes zh_CN where the browser wants zh-CN)
    const language = (translator ?? nullTranslator).languageCode.replace('_', '-');
    void app.restored.then(() => watchTimes(app.shell.node, language));
  }
};
