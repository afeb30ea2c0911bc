// Shows the menu of a job, or of those that are chosen.

import {
  copyIcon,
  deleteIcon,
  LabIcon,
  launchIcon,
  linkIcon,
  refreshIcon,
  stopIcon,
  terminalIcon
} from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';

import { IEntry, Kind } from './jobEntries';

const ICONS: Record<Kind, LabIcon> = {
  open: launchIcon,
  terminal: terminalIcon,
  connect: linkIcon,
  again: refreshIcon,
  clone: copyIcon,
  stop: stopIcon,
  kill: stopIcon,
  delete: deleteIcon
};

/** Show a menu at a place of the page; it is gone once something was chosen, or nothing. */
export function openMenu(groups: readonly (readonly IEntry[])[], x: number, y: number): void {
  const commands = new CommandRegistry();
  const menu = new Menu({ commands });
  groups.forEach((entries, group) => {
    if (group > 0) {
      menu.addItem({ type: 'separator' });
    }
    entries.forEach(({ label, kind, act }, number) => {
      const command = `${group}-${number}`;
      commands.addCommand(command, {
        label,
        icon: ICONS[kind].bindprops({ stylesheet: 'menuItem' }),
        execute: act,
        describedBy: { args: { type: 'object', properties: {} } }
      });
      menu.addItem({ command });
    });
  });
  const before = document.activeElement;
  menu.aboutToClose.connect(() => {
    // (the entry's command runs after the menu has closed)
    queueMicrotask(() => {
      menu.dispose();
      if (document.activeElement === document.body && before instanceof HTMLElement) {
        before.focus();
      }
    });
  });
  menu.open(x, y);
  menu.activeIndex = 0;
}
