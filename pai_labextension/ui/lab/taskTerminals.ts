// The shells of tasks: who lists, starts and ends those of one task, and the connection to one that is cut and comes back.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection, Terminal, TerminalAPI, TerminalManager } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

import { keyOf } from '../console/access/tasks';
import { ITask, partsOfTask } from '../console/data/client';
import { accepted, json, parsed } from '../console/data/errors';
import { vTerminalInfo, vTerminals } from '../console/generated/valibot.gen';
import { addressOf, ITranslation, ITransport } from '../console/host';
import { LabTransport, ROUTES } from './host';

/** JupyterLab's calls for terminals, on a task; in its language, and where this server has no terminals of its own. */
class TaskTerminalClient implements Terminal.ITerminalAPIClient {
  readonly isAvailable = true;

  constructor(
    readonly serverSettings: ServerConnection.ISettings,
    private readonly transport: ITransport,
    private readonly path: readonly string[],
    private readonly trans: ITranslation
  ) {}

  async startNew(): Promise<TerminalAPI.IModel> {
    return parsed(vTerminalInfo, await this.ask('POST', []), this.trans);
  }

  async listRunning(): Promise<TerminalAPI.IModel[]> {
    return parsed(vTerminals, await this.ask('GET', []), this.trans);
  }

  async shutdown(name: string): Promise<void> {
    await this.ask('DELETE', [name]);
  }

  private async ask(method: 'POST' | 'GET' | 'DELETE', below: readonly string[]): Promise<unknown> {
    const path = [...this.path, 'api', 'terminals', ...below];
    const question = { method, path, ...(method === 'POST' ? { body: {} } : {}) };
    return json(await (await accepted(await this.transport.request(question))).text());
  }
}

/** A shell that runs in a task. */
export interface IShell {
  readonly task: ITask;
  readonly name: string;
}

/** By what the shells of one task are reached; `client` tells why it could not, `manager` keeps them. */
export interface ITaskShells {
  readonly manager: TerminalManager;
  readonly client: Terminal.ITerminalAPIClient;
}

/** Hands out one manager per task; it asks for the task's shells while there are any, or somebody holds it. */
export class TaskTerminals {
  constructor(
    private readonly transport: LabTransport,
    private readonly trans: ITranslation
  ) {}

  /** Emitted when shells came or went. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** List the shells of all tasks that were opened here. */
  get shells(): IShell[] {
    return [...this.held.values()].flatMap(({ manager, task }) =>
      [...manager.running()].map(({ name }) => ({ task, name }))
    );
  }

  /** Take what a task's shells are reached by; give it back with `release`. */
  take(task: ITask): ITaskShells {
    const held = this.held.get(keyOf(task)) ?? this.make(task);
    held.users += 1;
    return held;
  }

  release(task: ITask): void {
    const held = this.held.get(keyOf(task));
    if (held) {
      held.users -= 1;
      this.drop(task);
    }
  }

  /** Ask for all shells again. */
  async refresh(): Promise<void> {
    await Promise.allSettled([...this.held.values()].map(({ manager }) => manager.refreshRunning()));
  }

  async shutdown({ task, name }: IShell): Promise<void> {
    const held = this.held.get(keyOf(task));
    await held?.client.shutdown(name);
    // when this hears that it was the last one, the manager is gone
    await held?.manager.refreshRunning().catch(() => undefined);
  }

  private make(task: ITask): IHeld {
    const path = ['terminals', ...partsOfTask(task)];
    const { settings } = this.transport;
    const serverSettings = {
      ...settings,
      baseUrl: this.transport.href([...path, '']),
      wsUrl: URLExt.join(settings.wsUrl, ROUTES, addressOf(path), '/')
    };
    const terminalAPIClient = new TaskTerminalClient(serverSettings, this.transport, path, this.trans);
    const manager = new TerminalManager({ serverSettings, terminalAPIClient });
    const held = { manager, client: terminalAPIClient, task, users: 0 };
    held.manager.runningChanged.connect(() => {
      this.drop(task);
      this._changed.emit();
    });
    // who waits for it hears why it is not
    held.manager.ready.catch(() => undefined);
    this.held.set(keyOf(task), held);
    return held;
  }

  /** A task without shells whose terminals were all closed is asked about no more. */
  private drop(task: ITask): void {
    const held = this.held.get(keyOf(task));
    if (held?.users === 0 && [...held.manager.running()].length === 0) {
      this.held.delete(keyOf(task));
      held.manager.dispose();
    }
  }

  private readonly held = new Map<string, IHeld>();
  private readonly _changed = new Signal<this, void>(this);
}

interface IHeld extends ITaskShells {
  readonly task: ITask;
  users: number;
}

/** Empties a terminal, with its scrollback. */
const RESET = '\x1bc';

/**
 * Passes on what JupyterLab's connection says, which may be cut and come back. After a cut the server tells the recent output again, so the
 * terminal is emptied first, and it does not know the size of this terminal any more.
 */
export class KeptConnection implements Terminal.ITerminalConnection {
  constructor(private readonly inner: Terminal.ITerminalConnection) {
    inner.messageReceived.connect(this.pass, this);
    inner.connectionStatusChanged.connect(this.follow, this);
    inner.disposed.connect(this.end, this);
    this.wasConnected = inner.connectionStatus === 'connected';
  }

  get name(): string {
    return this.inner.name;
  }

  get model(): Terminal.IModel {
    return this.inner.model;
  }

  get serverSettings(): ServerConnection.ISettings {
    return this.inner.serverSettings;
  }

  get connectionStatus(): Terminal.ConnectionStatus {
    return this.inner.connectionStatus;
  }

  get isDisposed(): boolean {
    return this.inner.isDisposed;
  }

  get messageReceived(): ISignal<this, Terminal.IMessage> {
    return this._messageReceived;
  }

  get connectionStatusChanged(): ISignal<this, Terminal.ConnectionStatus> {
    return this._connectionStatusChanged;
  }

  get disposed(): ISignal<this, void> {
    return this._disposed;
  }

  send(message: Terminal.IMessage): void {
    if (message.type === 'set_size') {
      this.size = message;
    }
    this.inner.send(message);
  }

  reconnect(): Promise<void> {
    return this.inner.reconnect();
  }

  shutdown(): Promise<void> {
    return this.inner.shutdown();
  }

  /** Close the connection; the shell goes on. */
  dispose(): void {
    this.inner.dispose();
  }

  private pass(_: unknown, message: Terminal.IMessage): void {
    this._messageReceived.emit(message);
  }

  private follow(_: unknown, status: Terminal.ConnectionStatus): void {
    if (status === 'connected') {
      if (this.wasConnected) {
        this._messageReceived.emit({ type: 'stdout', content: [RESET] });
        if (this.size) {
          this.inner.send(this.size);
        }
      }
      this.wasConnected = true;
    }
    this._connectionStatusChanged.emit(status);
  }

  private end(): void {
    this._disposed.emit();
    Signal.clearData(this);
  }

  private wasConnected: boolean;
  private size: Terminal.IMessage | undefined;
  private readonly _messageReceived = new Signal<this, Terminal.IMessage>(this);
  private readonly _connectionStatusChanged = new Signal<this, Terminal.ConnectionStatus>(this);
  private readonly _disposed = new Signal<this, void>(this);
}
