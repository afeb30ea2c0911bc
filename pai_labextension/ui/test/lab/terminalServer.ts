// A real HTTP and WebSocket server in place of the notebook server: shells that say again what they were told.

import { createServer, Server } from 'node:http';
import { AddressInfo } from 'node:net';

import { ServerConnection } from '@jupyterlab/services';
import { WebSocket, WebSocketServer } from 'ws';

const PATH = '/user/alice/pai/terminals/alice/train/worker-0/';

export class TerminalServer {
  /** What each shell has said, by its name; replayed to each new viewer. */
  readonly said = new Map<string, string>();
  /** The sizes that shells were given. */
  readonly sizes: unknown[][] = [];
  /** What is refused from now on, and why. */
  refusal = '';

  static async open(): Promise<TerminalServer> {
    const server = new TerminalServer();
    await new Promise<void>(resolve => server.server.listen(0, '127.0.0.1', resolve));
    server.sockets.on('connection', (socket, request) => server.attend(socket, request.url!));
    return server;
  }

  get settings(): ServerConnection.ISettings {
    const { port } = this.server.address() as AddressInfo;
    const host = `127.0.0.1:${port}/user/alice/`;
    return ServerConnection.makeSettings({ baseUrl: `http://${host}`, wsUrl: `ws://${host}`, token: 'secret' });
  }

  /** End all connections, as a network does; the shells go on. */
  cut(): void {
    this.sockets.clients.forEach(socket => socket.terminate());
  }

  /** End a shell. */
  end(name: string): void {
    this.said.delete(name);
    this.sockets.clients.forEach(socket => socket.send(JSON.stringify(['disconnect', 1])));
  }

  async close(): Promise<void> {
    this.cut();
    this.server.closeAllConnections();
    await new Promise(resolve => this.server.close(resolve));
  }

  private attend(socket: WebSocket, url: string): void {
    const name = url.split('?')[0]!.replace(`${PATH}terminals/websocket/`, '');
    const say = (...words: unknown[]) => socket.send(JSON.stringify(words));
    if (!this.said.has(name)) {
      socket.close(4404);
      return;
    }
    say('setup', {});
    if (this.said.get(name)) {
      say('stdout', this.said.get(name));
    }
    socket.on('message', data => {
      const [kind, ...content] = JSON.parse((data as Buffer).toString()) as [string, ...string[]];
      if (kind === 'stdin') {
        this.said.set(name, this.said.get(name)! + content[0]!);
        say('stdout', content[0]);
      } else {
        this.sizes.push(content);
      }
    });
  }

  private readonly server: Server = createServer((request, response) => {
    const [path] = request.url!.split('?');
    const answer = (status: number, body: unknown) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(status === 204 ? undefined : JSON.stringify(body));
    };
    const models = [...this.said.keys()].map(name => ({ name }));
    if (this.refusal) {
      answer(502, { message: this.refusal });
    } else if (path === `${PATH}api/terminals` && request.method === 'POST') {
      const name = String(this.said.size + 1);
      this.said.set(name, '');
      answer(200, { name });
    } else if (path === `${PATH}api/terminals`) {
      answer(200, models);
    } else if (request.method === 'DELETE') {
      this.said.delete(path!.split('/').pop()!);
      answer(204, null);
    } else {
      answer(404, { message: path });
    }
  });

  private readonly sockets = new WebSocketServer({ server: this.server });
}
