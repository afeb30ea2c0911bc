// A menu at a place of the page: entries in groups, by mouse and keyboard.

import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { Icon, Sign } from './icon';

/** An entry of a menu. */
export interface IEntry {
  readonly label: string;
  readonly icon: Sign;
  readonly act: () => void;
}

/** px between the menu and the edge of the window. */
const MARGIN = 4;

/** Show a menu at a place of the window; it is gone once something was chosen, or nothing. */
export function openMenu(groups: readonly (readonly IEntry[])[], x: number, y: number, root: ParentNode): void {
  const before = document.activeElement;
  const box = document.createElement('div');
  box.className = 'pai-Menu';
  // (one that closes by itself would do so when the button is let go that has opened it by `contextmenu`)
  box.popover = 'manual';
  // (JupyterLab has shortcuts on single keys)
  box.setAttribute('data-lm-suppress-shortcuts', 'true');
  root.append(box);
  const drawn = createRoot(box);
  const ended = new AbortController();
  const close = () => {
    ended.abort();
    drawn.unmount();
    box.remove();
    if (before instanceof HTMLElement && (document.activeElement === document.body || !document.activeElement)) {
      before.focus();
    }
  };
  const { signal } = ended;
  window.addEventListener('pointerdown', event => event.composedPath().includes(box) || close(), {
    signal,
    capture: true
  });
  window.addEventListener('resize', close, { signal });
  window.addEventListener('blur', close, { signal });
  box.showPopover();
  drawn.render(<Entries groups={groups} close={close} onDrawn={() => place(box, x, y)} />);
}

function Entries(props: {
  groups: readonly (readonly IEntry[])[];
  close: () => void;
  onDrawn: () => void;
}): React.ReactElement {
  const { groups, close, onDrawn } = props;
  const list = React.useRef<HTMLDivElement>(null);
  const drawn = React.useRef(onDrawn);
  const items = () => [...(list.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
  React.useLayoutEffect(() => {
    drawn.current();
    list.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus();
  }, []);
  const onKeyDown = (event: React.KeyboardEvent) => {
    const all = items();
    const at = all.indexOf(event.target as HTMLElement);
    const to = {
      ArrowDown: (at + 1) % all.length,
      ArrowUp: (at - 1 + all.length) % all.length,
      Home: 0,
      End: all.length - 1
    }[event.key];
    if (to !== undefined) {
      all[to]?.focus();
      event.preventDefault();
    } else if (event.key === 'Tab' || event.key === 'Escape') {
      close();
      event.preventDefault();
    } else if (event.key.length === 1) {
      const wanted = event.key.toLowerCase();
      const after = [...all.slice(at + 1), ...all.slice(0, at + 1)];
      after.find(item => item.textContent?.trim().toLowerCase().startsWith(wanted))?.focus();
    }
  };
  return (
    <div ref={list} role="menu" onKeyDown={onKeyDown}>
      {groups
        .filter(entries => entries.length > 0)
        .map((entries, group) => (
          <div role="group" key={group}>
            {entries.map(({ label, icon, act }) => (
              <button
                type="button"
                role="menuitem"
                tabIndex={-1}
                key={label}
                onClick={() => {
                  close();
                  act();
                }}
              >
                <Icon sign={icon} />
                {label}
              </button>
            ))}
          </div>
        ))}
    </div>
  );
}

/** Put a box where it is whole in the window. */
function place(box: HTMLElement, x: number, y: number): void {
  const { width, height } = box.getBoundingClientRect();
  const within = (at: number, size: number, most: number) => Math.max(MARGIN, Math.min(at, most - size - MARGIN));
  box.style.left = `${within(x, width, window.innerWidth)}px`;
  box.style.top = `${y + height + MARGIN > window.innerHeight ? within(y - height, height, window.innerHeight) : y}px`;
}
