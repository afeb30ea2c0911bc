// How each program gets into a task: what to click, what to copy, what to fill in where.

import * as React from 'react';

import { IConnect } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { ConnectModel } from './connectModel';
import { CopyText, DownloadButton, Row, ValueTable } from '../../console/kit/copy';
import {
  addressOf,
  aliasOf,
  directOf,
  gatewayLink,
  IAddress,
  keyFile,
  knownHost,
  protectKey,
  sftpLink,
  sshConfig,
  sshLine,
  vsCodeLink
} from './recipes';

/** What every guide knows. */
export interface IGuideProps {
  readonly model: ConnectModel;
  readonly connect: IConnect;
  readonly address: IAddress;
  readonly trans: ITranslation;
}

/** Where the guides put the key. */
function keyPath(connect: IConnect): string {
  return `~/.ssh/${keyFile(connect)}`;
}

function KeyButtons({ model, connect, trans }: IGuideProps): React.ReactElement {
  const name = keyFile(connect);
  return (
    <p className="pai-Guide-buttons">
      <DownloadButton label={trans.__('Download the key')} name={name} read={() => model.key('openssh')} />
      <DownloadButton
        label={trans.__('For PuTTY and WinSCP (.ppk)')}
        name={`${name}.ppk`}
        read={() => model.key('ppk')}
      />
    </p>
  );
}

/** `ssh`, `scp` and all that is built on them. */
export function CommandLineGuide(props: IGuideProps): React.ReactElement {
  const { connect, address, trans } = props;
  const protect = protectKey(keyFile(connect));
  const direct = connect.gateway ? directOf(connect) : null;
  const known = knownHost(address);
  return (
    <>
      <h3>{trans.__('With the key of the job')}</h3>
      <KeyButtons {...props} />
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
export function VsCodeGuide(props: IGuideProps): React.ReactElement {
  const { model, connect, trans } = props;
  const alias = aliasOf(connect);
  return (
    <>
      <h3>{trans.__('In the browser')}</h3>
      <CodeServer model={model} trans={trans} />
      <h3>{trans.__('On your computer')}</h3>
      <ol>
        <li>{trans.__('Install the extension “Remote - SSH” in VS Code.')}</li>
        <li>
          {trans.__(
            'Make the task known: run the first line in a terminal of your computer, or put the key and the block in place yourself.'
          )}
          <CopyText label={trans.__('With the command pai')} text="pai ssh-config --write" trans={trans} />
          <ConfigBlock {...props} alias={alias} />
          <KeyButtons {...props} />
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

function ConfigBlock({ connect, address, alias, trans }: IGuideProps & { alias: string }): React.ReactElement {
  const block = sshConfig(address, alias, keyPath(connect));
  return block === null ? (
    <p>{trans.__('This user name cannot stand in ~/.ssh/config; log in with the command line.')}</p>
  ) : (
    <CopyText label={trans.__('Block for ~/.ssh/config')} text={block} trans={trans} />
  );
}

function CodeServer({ model, trans }: Pick<IGuideProps, 'model' | 'trans'>): React.ReactElement {
  const [state, setState] = React.useState<{ url?: string; error?: string; busy?: boolean }>({});
  const open = async () => {
    setState({ busy: true });
    // a tab that is opened later than the click would be held back as a pop-up
    const tab = window.open('', '_blank');
    try {
      const url = await model.codeServer();
      if (tab) {
        tab.opener = null;
        tab.location.href = url;
      }
      setState({ url });
    } catch (error) {
      tab?.close();
      setState({ error: (error as Error).message });
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
export function PyCharmGuide(props: IGuideProps): React.ReactElement {
  const { connect, address, trans } = props;
  const login: Row[] = [
    [trans.__('Host'), address.host],
    [trans.__('Port'), String(address.port)],
    [trans.__('Username'), address.user],
    [trans.__('Authentication type'), 'Key pair'],
    [trans.__('Private key file'), keyPath(connect)]
  ];
  return (
    <>
      <KeyButtons {...props} />
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
export function GatewayGuide(props: IGuideProps): React.ReactElement {
  const { connect, address, trans } = props;
  return (
    <>
      <KeyButtons {...props} />
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
export function VisualStudioGuide(props: IGuideProps): React.ReactElement {
  const { connect, address, trans } = props;
  return (
    <>
      <KeyButtons {...props} />
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
export function FilesGuide(props: IGuideProps): React.ReactElement {
  const { connect, address, trans } = props;
  const name = keyFile(connect);
  return (
    <>
      <KeyButtons {...props} />
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
export function guideProps(model: ConnectModel, connect: IConnect, trans: ITranslation): IGuideProps | null {
  const address = addressOf(connect, location.hostname);
  // a task whose folder could not be asked for is opened at its root
  return address && { model, connect: { ...connect, workDir: connect.workDir || '/' }, address, trans };
}
