// A connection to a shell that is cut and comes back: what it shows then is written once, in the right size.

import { ServerConnection, Terminal } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

/** Empties a terminal, with its scrollback. */
const RESET = '\x1bc';

/**
 * Passes on what JupyterLab's connection says. After a cut the server tells the recent output again, so the
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
