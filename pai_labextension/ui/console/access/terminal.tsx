// A terminal in a task, on a page of its own: xterm, and the connection to a shell that is cut and comes back.

import type { ITheme, Terminal } from '@xterm/xterm';
import * as React from 'react';

import { ITask, partsOfTask } from '../data/client';
import { accepted, json, messageOf, parsed } from '../data/errors';
import { IDisposable, Signal, useSignal } from '../data/store';
import { vTerminalInfo, vTerminals } from '../generated/valibot.gen';
import { IHost, useHost } from '../host';
import { copyToClipboard } from '../kit/copy';
import { ShellNews, ShellState } from './shell';
import { keyOf } from './tasks';

/** ms until a cut connection is tried again, and at most after several failures. */
const AGAIN = 500;
const MAX_AGAIN = 10_000;
/** Lines that can be scrolled back to. */
const SCROLLBACK = 5_000;
/** The code with which the server closes a WebSocket whose login has ended. */
const LOGIN_EXPIRED = 4401;

/** What of xterm is needed here. */
export type Screen = Pick<Terminal, 'write' | 'reset' | 'focus' | 'rows' | 'cols'>;

/** One shell of a task, which goes on while nobody looks; which one it is, this tab of the browser remembers. */
export class Shell implements IDisposable {
  constructor(
    private readonly host: Pick<IHost, 'transport' | 'trans'>,
    readonly task: ITask,
    private readonly screen: Screen
  ) {
    this.path = ['terminals', ...partsOfTask(task)];
    this.kept = `pai-shell:${keyOf(task)}`;
  }

  /** Emitted when the state changed. */
  readonly changed = new Signal();

  get state(): ShellState {
    return this._state;
  }

  /** Why there is no shell. */
  get reason(): string {
    return this._reason;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Go on with the shell of this tab, or start one. */
  async open(): Promise<void> {
    this.set('opening');
    try {
      if (!(await this.isThere())) {
        this.name = parsed(vTerminalInfo, await this.ask('POST', {}), this.host.trans).name;
      }
      this.connect();
    } catch (error) {
      this.set('failed', messageOf(error));
    }
  }

  /** Start another shell in place of the one that is over. */
  renew(): Promise<void> {
    this.name = null;
    this.screen.reset();
    this.screen.focus(); // the button that asked for it goes
    return this.open();
  }

  /** Try now to reach the shell again. */
  async retry(): Promise<void> {
    window.clearTimeout(this.timer);
    try {
      if (await this.isThere()) {
        this.connect();
      } else {
        this.set('ended');
      }
    } catch {
      this.retryLater();
    }
  }

  /** Type something. */
  type(text: string): void {
    this.say('stdin', text);
  }

  /** Make the shell as large as the screen is. */
  resize(): void {
    this.say('set_size', this.screen.rows, this.screen.cols);
  }

  /** Look no more; the shell goes on. */
  dispose(): void {
    this._isDisposed = true;
    window.clearTimeout(this.timer);
    this.socket?.close();
    this.changed.clear();
  }

  private get name(): string | null {
    return sessionStorage.getItem(this.kept);
  }

  private set name(name: string | null) {
    if (name === null) {
      sessionStorage.removeItem(this.kept);
    } else {
      sessionStorage.setItem(this.kept, name);
    }
  }

  private async isThere(): Promise<boolean> {
    const { name } = this;
    return (
      name !== null && parsed(vTerminals, await this.ask('GET'), this.host.trans).some(shell => shell.name === name)
    );
  }

  private async ask(method: 'GET' | 'POST', body?: unknown): Promise<unknown> {
    const question = { method, path: [...this.path, 'api', 'terminals'], body };
    return json(await (await accepted(await this.host.transport.request(question))).text());
  }

  private connect(): void {
    if (this.isDisposed) {
      return;
    }
    const socket = this.host.transport.socket!([...this.path, 'terminals', 'websocket', this.name!]);
    this.socket = socket;
    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      const [kind, content] = json(data) as [string, unknown];
      if (kind === 'setup') {
        // the recent output comes again, and the shell does not know how large this screen is
        this.screen.reset();
        this.again = AGAIN;
        this.set('open');
        this.resize();
      } else if (kind === 'stdout' && typeof content === 'string') {
        this.screen.write(content);
      } else if (kind === 'disconnect') {
        this.set('ended');
      }
    });
    socket.addEventListener('close', ({ code }) => {
      if (this.isDisposed || this.socket !== socket || this.state === 'ended') {
        return;
      }
      if (code === LOGIN_EXPIRED) {
        this.set('failed', this.host.trans.__('Your login has expired.'));
      } else {
        this.set('cut');
        this.retryLater();
      }
    });
  }

  private retryLater(): void {
    if (!this.isDisposed) {
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.retry(), this.again);
      this.again = Math.min(2 * this.again, MAX_AGAIN);
    }
  }

  private say(...message: unknown[]): void {
    if (this.socket?.readyState === WebSocket.OPEN && this.state === 'open') {
      this.socket.send(JSON.stringify(message));
    }
  }

  private set(state: ShellState, reason = ''): void {
    this._state = state;
    this._reason = reason;
    if (!this.isDisposed) {
      this.changed.emit();
    }
  }

  private readonly path: readonly string[];
  private readonly kept: string;
  private socket: WebSocket | null = null;
  private timer = 0;
  private again = AGAIN;
  private _state: ShellState = 'opening';
  private _reason = '';
  private _isDisposed = false;
}

/** Shows a shell of a task, as large as there is room. */
export function TaskTerminal({ task }: { task: ITask }): React.ReactElement {
  const host = useHost();
  const box = React.useRef<HTMLDivElement>(null);
  const [shell, setShell] = React.useState<Shell | null>(null);
  React.useEffect(() => {
    let close = () => undefined as void;
    let gone = false;
    void show(box.current!, host, task).then(shown => {
      if (gone) {
        shown.close();
      } else {
        close = shown.close;
        setShell(shown.shell);
        void shown.shell.open();
      }
    });
    return () => {
      gone = true;
      close();
    };
  }, [host, task]);
  return (
    <div className="pai-Shell">
      <div ref={box} className="pai-Shell-screen" />
      <div className="pai-Shell-bar">{shell && <News host={host} shell={shell} />}</div>
    </div>
  );
}

function News({ host, shell }: { host: IHost; shell: Shell }): React.ReactElement {
  useSignal(shell.changed);
  const { user, job, task } = shell.task;
  return (
    <ShellNews
      task={task}
      state={shell.state}
      reason={shell.reason}
      onRetry={() => void shell.retry()}
      onOpen={() => void shell.open()}
      onRenew={() => void shell.renew()}
      onClose={() => host.places.open({ page: 'job', job: { username: user, name: job } })}
    />
  );
}

/** Fill a box with a terminal; return its shell, which is not opened yet, and what ends all of it. */
async function show(box: HTMLElement, host: IHost, task: ITask): Promise<{ shell: Shell; close: () => void }> {
  const [{ Terminal }, { FitAddon }] = await Promise.all([import('@xterm/xterm'), import('@xterm/addon-fit')]);
  const { trans, facts } = host;
  if (facts.styleNonce) {
    allowStyles(facts.styleNonce);
  }
  Terminal.strings.promptLabel = trans.__('Terminal');
  const { fontFamily, fontSize } = getComputedStyle(box);
  const terminal = new Terminal({
    fontFamily,
    fontSize: parseFloat(fontSize),
    cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
    scrollback: SCROLLBACK,
    // its sixteen colours are made for black
    minimumContrastRatio: 4.5,
    // what a program says where a link leads is not what it shows
    linkHandler: { activate: () => undefined },
    theme: themeOf(box)
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(box);
  const shell = new Shell(host, task, terminal);
  terminal.onData(text => shell.type(text));
  terminal.onResize(() => shell.resize());
  terminal.attachCustomKeyEventHandler(event => isForShell(event, terminal));
  const sizes = new ResizeObserver(() => fit.fit());
  sizes.observe(box);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const recolour = () => {
    terminal.options.theme = themeOf(box);
  };
  dark.addEventListener('change', recolour);
  fit.fit();
  terminal.focus();
  const close = () => {
    dark.removeEventListener('change', recolour);
    sizes.disconnect();
    shell.dispose();
    terminal.dispose();
  };
  return { shell, close };
}

/** Copy and paste as everywhere else; all else that is typed is the shell's. */
function isForShell(event: KeyboardEvent, terminal: Terminal): boolean {
  if (event.type !== 'keydown' || event.altKey || !(event.ctrlKey || event.metaKey)) {
    return true;
  }
  const key = event.key.toLowerCase();
  if (key === 'c' && terminal.hasSelection()) {
    event.preventDefault();
    copyToClipboard(terminal.getSelection());
    terminal.clearSelection();
    return false;
  }
  // (the browser pastes)
  return key !== 'v';
}

/** Return the colours that the box has by its style. */
function themeOf(box: HTMLElement): ITheme {
  const { color, backgroundColor, caretColor, outlineColor } = getComputedStyle(box);
  return { foreground: color, background: backgroundColor, cursor: caretColor, selectionBackground: outlineColor };
}

/** Let the style sheets that xterm writes pass the page's policy, which knows them by this word. */
function allowStyles(nonce: string): void {
  const create = document.createElement;
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element: HTMLElement = create.call(document, name, options);
    if (name === 'style') {
      element.nonce = nonce;
    }
    return element;
  };
}
