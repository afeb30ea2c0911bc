import { PageConfig } from '@jupyterlab/coreutils';
import { Terminal } from '@jupyterlab/services';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { KeptConnection, TaskTerminals } from '../../lab/taskTerminals';
import { LabTransport } from '../../lab/host';
import { trans } from '../notebookServer';
import { TerminalServer } from './terminalServer';

const TASK = { user: 'alice', job: 'train', task: 'worker-0' };

describe('the shells of a task', () => {
  let server: TerminalServer;
  let terminals: TaskTerminals;

  beforeEach(async () => {
    // those of the notebook server itself are switched off; that is no matter of ours
    PageConfig.setOption('terminalsAvailable', 'false');
    server = await TerminalServer.open();
    terminals = new TaskTerminals(new LabTransport(server.settings, 'en', trans), trans);
  });

  afterEach(() => server.close());

  /** Start a shell; note all that it says. */
  async function started(): Promise<{ connection: KeptConnection; heard: () => string }> {
    const connection = new KeptConnection(await terminals.take(TASK).manager.startNew());
    let heard = '';
    connection.messageReceived.connect((_, message) => (heard += message.content?.[0]));
    await status(connection, 'connected');
    return { connection, heard: () => heard };
  }

  function status(connection: KeptConnection, wanted: Terminal.ConnectionStatus): Promise<void> {
    return vi.waitFor(() => expect(connection.connectionStatus).toBe(wanted));
  }

  it('are started, used and listed', async () => {
    const { connection, heard } = await started();
    connection.send({ type: 'stdin', content: ['hello'] });
    await vi.waitFor(() => expect(heard()).toBe('hello'));
    expect(terminals.shells).toEqual([{ task: TASK, name: '1' }]);
    terminals.release(TASK);
    // somebody may come back to it: it is listed as long as it runs
    expect(terminals.shells).toHaveLength(1);
    await terminals.shutdown({ task: TASK, name: '1' });
    await vi.waitFor(() => expect(terminals.shells).toEqual([]));
    expect(server.said.size).toBe(0);
    expect(connection.isDisposed).toBe(true);
  });

  it('are as they were after a cut: said once, in the size of the terminal', async () => {
    const { connection, heard } = await started();
    connection.send({ type: 'set_size', content: [24, 80, 1, 1] });
    connection.send({ type: 'stdin', content: ['kept'] });
    await vi.waitFor(() => expect(heard()).toBe('kept'));
    server.sizes.length = 0;
    const cut = new Promise<void>(resolve => connection.connectionStatusChanged.connect(() => resolve()));
    server.cut();
    await cut;
    connection.send({ type: 'stdin', content: [' and typed meanwhile'] });
    await vi.waitFor(() => expect(heard()).toMatch(/typed meanwhile$/));
    const [before, after] = heard().split('\x1bc');
    expect(before).toBe('kept');
    expect(after).toMatch(/^kept/);
    expect(server.sizes).toEqual([[24, 80, 1, 1]]);
  });

  it('tell when they end', async () => {
    const { connection } = await started();
    const ended = new Promise<void>(resolve => connection.disposed.connect(() => resolve()));
    server.end('1');
    await ended;
    expect(connection.isDisposed).toBe(true);
  });

  it('are refused in the words of the server', async () => {
    server.refusal = 'Job train has ended.';
    await expect(terminals.take(TASK).manager.startNew()).rejects.toThrow('Job train has ended.');
  });

  it('are asked for no more when the last terminal of a task without shells is closed', async () => {
    const { manager } = terminals.take(TASK);
    await manager.ready;
    terminals.take(TASK);
    terminals.release(TASK);
    expect(manager.isDisposed).toBe(false);
    terminals.release(TASK);
    expect(manager.isDisposed).toBe(true);
  });
});
