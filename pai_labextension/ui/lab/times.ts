// Times that a widget of the kernel's has written, as the clock of the person in front of the browser shows them.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';

import { FORMS, inFull, localText, TimeForm } from '../console/kit/time';
import { ILabHost } from './host';

/** Where a widget of the kernel's has written a time: ms since the epoch, and in `data-pai-form` its form. */
const WRITTEN = 'data-pai-time';

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
  requires: [ILabHost],
  activate: (app: JupyterFrontEnd, { language }: ILabHost) => {
    void app.restored.then(() => watchTimes(app.shell.node, language));
  }
};
