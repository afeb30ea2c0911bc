// How each program gets into a task: what to click, what to copy, what to fill in where.

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import * as React from 'react';

import { IConnect } from '../data/client';
import { messageOf } from '../data/errors';
import { useHost } from '../host';
import { TextButton } from '../kit/button';
import { CopyText, DownloadButton, Row, ValueTable } from '../kit/copy';

/** What every guide knows. */
export interface IGuideProps {
  readonly connect: IConnect;
  readonly address: IAddress;
}

/** Where the guides put the key. */
function keyPath(connect: IConnect): string {
  return `~/.ssh/${keyFile(connect)}`;
}

function KeyButtons({ connect }: { connect: IConnect }): React.ReactElement {
  const { client, trans } = useHost();
  const name = keyFile(connect);
  return (
    <p className="pai-Guide-buttons">
      <DownloadButton label={trans.__('Download the key')} name={name} read={() => client.key(connect, 'openssh')} />
      <DownloadButton
        label={trans.__('For PuTTY and WinSCP (.ppk)')}
        name={`${name}.ppk`}
        read={() => client.key(connect, 'ppk')}
      />
    </p>
  );
}

/** `ssh`, `scp` and all that is built on them. */
export function CommandLineGuide({ connect, address }: IGuideProps): React.ReactElement {
  const { trans } = useHost();
  const protect = protectKey(keyFile(connect));
  const direct = connect.gateway ? directOf(connect) : null;
  const known = knownHost(address);
  return (
    <>
      <h3>{trans.__('With the key of the job')}</h3>
      <KeyButtons connect={connect} />
      <p>{trans.__('Nobody but you may be able to read the key, or ssh refuses it. This puts it in its place:')}</p>
      <CopyText label={trans.__('macOS, Linux')} text={protect.unix} trans={trans} />
      <CopyText label={trans.__('Windows (Command Prompt)')} text={protect.windows} trans={trans} />
      <CopyText label={trans.__('Log in')} text={sshLine(address, keyPath(connect))} trans={trans} />
      {direct && (
        <CopyText
          label={trans.__('Log in without the gateway')}
          text={sshLine(direct, keyPath(connect))}
          trans={trans}
        />
      )}
      {connect.gateway && (
        <>
          <h3>{trans.__('With a key of your own, or a token')}</h3>
          <p>
            {trans.__(
              'A public key that you register under “My keys” opens all your tasks. Or give a token of JupyterHub (File → Hub Control Panel → Token) as the password.'
            )}
          </p>
          <CopyText label={trans.__('Log in with a token')} text={sshLine(address, null)} trans={trans} />
        </>
      )}
      <h3>{trans.__('All your tasks at once')}</h3>
      <p>
        {trans.__(
          'Where the command pai is installed, this writes all running tasks into ~/.ssh/config, with their keys; ssh, scp, rsync and editors then know them by name.'
        )}
      </p>
      <CopyText
        label={trans.__('Write the configuration, then log in')}
        text={`pai ssh-config --write\nssh ${aliasOf(connect)}`}
        trans={trans}
      />
      {known && (
        <>
          <h3>{trans.__('Is it the right server?')}</h3>
          <CopyText label={trans.__('Line for ~/.ssh/known_hosts')} text={known} trans={trans} />
        </>
      )}
    </>
  );
}

/** VS Code on one's own computer, and in the browser. */
export function VsCodeGuide({ connect, address }: IGuideProps): React.ReactElement {
  const { trans } = useHost();
  const alias = aliasOf(connect);
  return (
    <>
      <h3>{trans.__('In the browser')}</h3>
      <CodeServer connect={connect} />
      <h3>{trans.__('On your computer')}</h3>
      <ol>
        <li>{trans.__('Install the extension “Remote - SSH” in VS Code.')}</li>
        <li>
          {trans.__(
            'Make the task known: run the first line in a terminal of your computer, or put the key and the block in place yourself.'
          )}
          <CopyText label={trans.__('With the command pai')} text="pai ssh-config --write" trans={trans} />
          <ConfigBlock connect={connect} address={address} alias={alias} />
          <KeyButtons connect={connect} />
        </li>
        <li>
          <a className="pai-Guide-link" href={vsCodeLink(alias, connect.workDir)}>
            {trans.__('Open %1 in VS Code', connect.workDir)}
          </a>
          {' — '}
          {trans.__('or press F1 in VS Code, choose “Remote-SSH: Connect to Host…” and then %1.', alias)}
        </li>
      </ol>
    </>
  );
}

function ConfigBlock({ connect, address, alias }: IGuideProps & { alias: string }): React.ReactElement {
  const { trans } = useHost();
  const block = sshConfig(address, alias, keyPath(connect));
  return block === null ? (
    <p>{trans.__('This user name cannot stand in ~/.ssh/config; log in with the command line.')}</p>
  ) : (
    <CopyText label={trans.__('Block for ~/.ssh/config')} text={block} trans={trans} />
  );
}

function CodeServer({ connect }: { connect: IConnect }): React.ReactElement {
  const { client, trans } = useHost();
  const [state, setState] = React.useState<{ url?: string; error?: string; busy?: boolean }>({});
  const open = async () => {
    setState({ busy: true });
    // a tab that is opened later than the click would be held back as a pop-up
    const tab = window.open('', '_blank');
    try {
      const url = await client.codeServer(connect);
      if (tab) {
        tab.opener = null;
        tab.location.href = url;
      }
      setState({ url });
    } catch (error) {
      tab?.close();
      setState({ error: messageOf(error) });
    }
  };
  return (
    <p className="pai-Guide-buttons">
      <TextButton disabled={state.busy ?? false} onClick={() => void open()}>
        {trans.__('Open code-server')}
      </TextButton>
      <span role={state.error ? 'alert' : 'status'}>
        {state.busy && trans.__('Starting code-server …')}
        {state.error}
        {state.url && (
          <a className="pai-Guide-link" href={state.url} target="_blank" rel="noopener">
            {trans.__('code-server runs in the task')}
          </a>
        )}
      </span>
    </p>
  );
}

/** PyCharm's deployment and its remote interpreter. */
export function PyCharmGuide({ connect, address }: IGuideProps): React.ReactElement {
  const { trans } = useHost();
  const login: Row[] = [
    [trans.__('Host'), address.host],
    [trans.__('Port'), String(address.port)],
    [trans.__('Username'), address.user],
    [trans.__('Authentication type'), 'Key pair'],
    [trans.__('Private key file'), keyPath(connect)]
  ];
  return (
    <>
      <KeyButtons connect={connect} />
      <h3>{trans.__('Upload the project (deployment)')}</h3>
      <ol>
        <li>{trans.__('Tools → Deployment → Configuration → + → SFTP.')}</li>
        <li>{trans.__('Beside “SSH configuration”, click … and fill in the values below; then “Test Connection”.')}</li>
        <li>{trans.__('On “Mappings”, fill in both paths. Tools → Deployment → Upload to … sends the project.')}</li>
      </ol>
      <ValueTable
        caption={trans.__('Deployment')}
        rows={[
          ...login,
          [trans.__('Root path'), '/'],
          [trans.__('Local path'), { words: trans.__('the folder of your project') }],
          [trans.__('Deployment path'), connect.workDir]
        ]}
        trans={trans}
      />
      <h3>{trans.__('Run in the task (remote interpreter, Professional edition)')}</h3>
      <ol>
        <li>{trans.__('Settings → Project → Python Interpreter → Add Interpreter → On SSH.')}</li>
        <li>{trans.__('Fill in host, port and user name, then “Key pair” and the private key file.')}</li>
        <li>{trans.__('Choose “System Interpreter”; “which python3” in a terminal of the task tells its path.')}</li>
      </ol>
      <ValueTable
        caption={trans.__('Remote interpreter')}
        rows={[
          ...login,
          [trans.__('Interpreter'), connect.python || '/usr/bin/python3'],
          [trans.__('Sync folders to'), connect.workDir]
        ]}
        trans={trans}
      />
    </>
  );
}

/** JetBrains Gateway. */
export function GatewayGuide({ connect, address }: IGuideProps): React.ReactElement {
  const { trans } = useHost();
  return (
    <>
      <KeyButtons connect={connect} />
      <ol>
        <li>
          <a className="pai-Guide-link" href={gatewayLink(address, connect.workDir)}>
            {trans.__('Open in JetBrains Gateway')}
          </a>
          {' — '}
          {trans.__('it comes with host, port and user filled in.')}
        </li>
        <li>{trans.__('Check “Specify private key”, choose the key, then “Check Connection and Continue”.')}</li>
        <li>{trans.__('Choose the IDE and the project folder. The task needs 2 GB of memory or more for the IDE.')}</li>
      </ol>
      <ValueTable
        caption={trans.__('Connection')}
        rows={[
          [trans.__('Host'), address.host],
          [trans.__('Port'), String(address.port)],
          [trans.__('Username'), address.user],
          [trans.__('Private key file'), keyPath(connect)],
          [trans.__('Project directory'), connect.workDir]
        ]}
        trans={trans}
      />
    </>
  );
}

/** Visual Studio's connection manager. */
export function VisualStudioGuide({ connect, address }: IGuideProps): React.ReactElement {
  const { trans } = useHost();
  return (
    <>
      <KeyButtons connect={connect} />
      <ol>
        <li>{trans.__('Install the workload “Linux and embedded development with C++”.')}</li>
        <li>{trans.__('Tools → Options → Cross Platform → Connection Manager → Add; fill in the values below.')}</li>
      </ol>
      <ValueTable
        caption={trans.__('Connect to Remote System')}
        rows={[
          [trans.__('Host name'), address.host],
          [trans.__('Port'), String(address.port)],
          [trans.__('User name'), address.user],
          [trans.__('Authentication type'), 'Private Key'],
          [trans.__('Private key file'), keyPath(connect).replace('~/.ssh/', '%USERPROFILE%\\.ssh\\')]
        ]}
        trans={trans}
      />
    </>
  );
}

/** WinSCP and FileZilla. */
export function FilesGuide({ connect, address }: IGuideProps): React.ReactElement {
  const { trans } = useHost();
  const name = keyFile(connect);
  return (
    <>
      <KeyButtons connect={connect} />
      <ol>
        <li>
          {trans.__(
            'WinSCP: in its Login dialog, Advanced → SSH → Authentication → Private key file is the .ppk file.'
          )}{' '}
          <a className="pai-Guide-link" href={sftpLink(address, connect.workDir)}>
            {trans.__('Open in WinSCP')}
          </a>
        </li>
        <li>{trans.__('FileZilla: File → Site Manager → New site; fill in the values below.')}</li>
      </ol>
      <ValueTable
        caption="FileZilla"
        rows={[
          [trans.__('Protocol'), 'SFTP - SSH File Transfer Protocol'],
          [trans.__('Host'), address.host],
          [trans.__('Port'), String(address.port)],
          [trans.__('Logon type'), 'Key file'],
          [trans.__('User'), address.user],
          [trans.__('Key file'), `${name}.ppk`],
          [trans.__('Default remote directory'), connect.workDir]
        ]}
        trans={trans}
      />
    </>
  );
}

/** Return what guides need; `null` where there is no address at all. */
export function guideProps(connect: IConnect): IGuideProps | null {
  const address = addressOf(connect, location.hostname);
  // a task whose folder could not be asked for is opened at its root
  return address && { connect: { ...connect, workDir: connect.workDir || '/' }, address };
}

// A task's address in the words of each program: command lines, configuration, links.

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
