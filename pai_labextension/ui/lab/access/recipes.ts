// What a task's address looks like in the words of each program: command lines, configuration, links.

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

import { IConnect } from '../../console/data/client';

/** What would end a quoted value of `~/.ssh/config`, or begin an expansion in it. */
const UNQUOTABLE = /["\\%$`\p{C}]/u;

/** Where programs log in: host, port and user. */
export interface IAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** As `ssh-ed25519 …`; `null` where it is not known. */
  readonly hostKey: string | null;
}

/**
 * Give the address to use, which is the gateway's; where there is none, the task's own.
 *
 * @param here - the host at which the browser reached JupyterLab
 */
export function addressOf(connect: IConnect, here: string): IAddress | null {
  const { gateway, published, login } = connect;
  if (gateway) {
    return { host: gateway.host ?? here, port: gateway.port, user: login, hostKey: gateway.hostKey };
  }
  return directOf(published && connect);
}

/** Return the address of the task's own SSH server, which knows only the job's key. */
export function directOf(connect: IConnect | null): IAddress | null {
  const published = connect?.published;
  return published ? { host: published.host, port: published.port, user: 'root', hostKey: null } : null;
}

/** Name the file of a job's key, without the folder. */
export function keyFile({ user, job }: Pick<IConnect, 'user' | 'job'>): string {
  return `${user}~${job}`.replace(/[^\p{L}\p{N}._~@+-]/gu, '_');
}

/** Name the task in `~/.ssh/config`, as `pai ssh-config` does. */
export function aliasOf({ job, task }: Pick<IConnect, 'job' | 'task'>): string {
  return `pai-${aliasWord(job)}-${aliasWord(task)}`;
}

/** Return the command line of a shell; `key` is a path, without it another key or a token is asked for. */
export function sshLine(address: IAddress, key: string | null): string {
  const identity = key === null ? '' : ` -i ${word(key)}`;
  return `ssh${identity} -p ${address.port} ${word(`${address.user}@${address.host}`)}`;
}

/**
 * Give the block for `~/.ssh/config` by which programs know the task as `alias`; `null` where a name cannot be
 * written there.
 */
export function sshConfig(address: IAddress, alias: string, key: string): string | null {
  if (UNQUOTABLE.test(address.user + key)) {
    return null;
  }
  const lines = [
    `Host ${alias}`,
    `  HostName ${address.host}`,
    `  Port ${address.port}`,
    `  User "${address.user}"`,
    `  IdentityFile "${key}"`,
    '  IdentitiesOnly yes',
    '  ServerAliveInterval 30'
  ];
  return lines.join('\n') + '\n';
}

/** Return the line for `~/.ssh/known_hosts` by which ssh knows that this is the right server. */
export function knownHost(address: IAddress): string | null {
  const { host, port, hostKey } = address;
  return hostKey === null ? null : `${port === 22 ? host : `[${host}]:${port}`} ${hostKey}`;
}

/** Return the link that opens a folder in VS Code over Remote-SSH. */
export function vsCodeLink(alias: string, folder: string): string {
  return `vscode://vscode-remote/ssh-remote+${alias}${encodePath(folder)}`;
}

/** Return the link that fills in JetBrains Gateway's SSH connection. */
export function gatewayLink(address: IAddress, folder: string): string {
  const parts = { host: address.host, port: address.port, user: address.user, projectPath: folder };
  const query = Object.entries(parts).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `jetbrains-gateway://connect#${[...query, 'type=ssh', 'deploy=false'].join('&')}`;
}

/** Return the link that opens a folder in WinSCP, or whatever knows `sftp://`. */
export function sftpLink(address: IAddress, folder: string): string {
  return `sftp://${encodeURIComponent(address.user)}@${urlHost(address.host)}:${address.port}${encodePath(folder)}/`;
}

/** Return what makes a key readable for its owner only, which ssh insists on. */
export function protectKey(file: string): { readonly unix: string; readonly windows: string } {
  return {
    unix: `mkdir -p ~/.ssh && mv ${word(`~/Downloads/${file}`)} ~/.ssh/ && chmod 600 ${word(`~/.ssh/${file}`)}`,
    windows:
      `md "%USERPROFILE%\\.ssh" 2>nul & ` +
      `move "%USERPROFILE%\\Downloads\\${file}" "%USERPROFILE%\\.ssh\\" && ` +
      `icacls "%USERPROFILE%\\.ssh\\${file}" /inheritance:r /grant:r "%USERNAME%:R"`
  };
}

/** Write a word of a command line; what a shell would read otherwise is quoted, a `~/` at its start is not. */
function word(text: string): string {
  const [home, rest] = text.startsWith('~/') ? ['~/', text.slice(2)] : ['', text];
  return home + (/^[\w@%+=:,./~-]+$/.test(rest) ? rest : `'${rest.replaceAll("'", "'\\''")}'`);
}

/** Write a part of an alias; another name gives another one, though some letters cannot stand in it. */
function aliasWord(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._-]/gu, '-');
  return plain === name ? name : `${plain}-${bytesToHex(sha256(utf8ToBytes(name))).slice(0, 4)}`;
}

function encodePath(path: string): string {
  const absolute = path.startsWith('/') ? path : `/${path}`;
  return absolute.replace(/\/+$/, '').split('/').map(encodeURIComponent).join('/');
}

function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
