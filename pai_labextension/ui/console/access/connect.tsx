// “Connect”: all ways into one task on one page, ready to click or to copy, and a button that tries the connection.

import * as React from 'react';

import { Client, ICheck, IConnect, IPublicKey, ITask } from '../data/client';
import { messageOf } from '../data/errors';
import { IDisposable, Signal, useSignal } from '../data/store';
import { useHost } from '../host';
import { TextButton } from '../kit/button';
import { confirm } from '../kit/dialog';
import { PageError } from '../kit/status';
import { LocalTime } from '../kit/time';
import {
  CommandLineGuide,
  FilesGuide,
  GatewayGuide,
  guideProps,
  IGuideProps,
  PyCharmGuide,
  VisualStudioGuide,
  VsCodeGuide
} from './guides';
import { PortLink } from './ports';

/** Asks for a task's address and its owner's keys; each part says by itself why it is not known. */
export class ConnectModel implements IDisposable {
  constructor(
    readonly task: ITask,
    private readonly client: Client
  ) {}

  readonly changed = new Signal();

  /** `null` until it is known. */
  get connect(): IConnect | null {
    return this._connect;
  }

  /** Why it is not known. */
  get error(): string {
    return this._error;
  }

  /** `null`: not tried, or being tried. */
  get checked(): ICheck | null {
    return this._checked;
  }

  get isChecking(): boolean {
    return this._isChecking;
  }

  /** `null` until they are known. */
  get keys(): readonly IPublicKey[] | null {
    return this._keys;
  }

  /** Why the keys are not known, or were not changed. */
  get keysError(): string {
    return this._keysError;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this.changed.clear();
  }

  /** Ask for the address again. */
  async refresh(): Promise<void> {
    try {
      this._connect = await this.client.connect(this.task);
      this._error = '';
    } catch (error) {
      this._error = messageOf(error);
    }
    this.tell();
  }

  /** Log in and tell how that went. */
  async check(): Promise<void> {
    this._checked = null;
    this._isChecking = true;
    this.tell();
    try {
      this._checked = await this.client.checkConnection(this.task);
    } catch (error) {
      this._checked = { ok: false, message: messageOf(error), milliseconds: 0 };
    }
    this._isChecking = false;
    this.tell();
  }

  async refreshKeys(): Promise<void> {
    await this.withKeys(async () => undefined);
  }

  /** Register a key; tell whether that was taken. */
  addKey(key: string): Promise<boolean> {
    return this.withKeys(() => this.client.addPublicKey(this.task.user, key));
  }

  /** Forget a key; tell whether that was taken. */
  removeKey({ fingerprint }: IPublicKey): Promise<boolean> {
    return this.withKeys(() => this.client.removePublicKey(this.task.user, fingerprint));
  }

  private async withKeys(change: () => Promise<void>): Promise<boolean> {
    let done = true;
    try {
      await change();
      this._keys = await this.client.publicKeys(this.task.user);
      this._keysError = '';
    } catch (error) {
      this._keysError = messageOf(error);
      done = false;
    }
    this.tell();
    return done;
  }

  private tell(): void {
    if (!this._isDisposed) {
      this.changed.emit();
    }
  }

  private _connect: IConnect | null = null;
  private _error = '';
  private _checked: ICheck | null = null;
  private _isChecking = false;
  private _keys: readonly IPublicKey[] | null = null;
  private _keysError = '';
  private _isDisposed = false;
}

/** Shows how to reach a task. */
export function Connect({ task }: { task: ITask }): React.ReactElement {
  const { client, trans, places } = useHost();
  const model = React.useMemo(() => new ConnectModel(task, client), [task, client]);
  React.useEffect(() => {
    void model.refresh();
    return () => model.dispose();
  }, [model]);
  useSignal(model.changed);
  const { connect, checked } = model;
  const job = { username: task.user, name: task.job };
  return (
    <div className="pai-Page pai-Connect">
      <div className="pai-Page-header">
        <h2>{trans.__('Connect to %1 of “%2”', task.task, task.job)}</h2>
        <TextButton icon="terminal" onClick={() => places.open({ page: 'terminal', job, task: task.task })}>
          {trans.__('Open a terminal')}
        </TextButton>
        <TextButton disabled={model.isChecking} onClick={() => void model.check()}>
          {trans.__('Check the connection')}
        </TextButton>
        <TextButton icon="refresh" onClick={() => void model.refresh()}>
          {trans.__('Refresh')}
        </TextButton>
      </div>
      <p role="status" className="pai-Connect-checked" data-ok={checked?.ok}>
        {model.isChecking
          ? trans.__('Logging in …')
          : checked === null
            ? trans.__('“Check the connection” logs in at the task as you would, and says what is wrong.')
            : checked.ok
              ? trans.__('%1 (%2 ms)', checked.message, Math.round(checked.milliseconds))
              : checked.message}
      </p>
      <PageError text={model.error} />
      {connect === null ? (
        !model.error && <p role="status">{trans.__('Asking how to reach the task …')}</p>
      ) : (
        <Ways model={model} connect={connect} />
      )}
    </div>
  );
}

/** What is shown below the heading. */
type Way = 'command-line' | 'vscode' | 'pycharm' | 'gateway' | 'visual-studio' | 'files' | 'ports' | 'keys';

const GUIDES: Partial<Record<Way, (props: IGuideProps) => React.ReactElement>> = {
  'command-line': CommandLineGuide,
  vscode: VsCodeGuide,
  pycharm: PyCharmGuide,
  gateway: GatewayGuide,
  'visual-studio': VisualStudioGuide,
  files: FilesGuide
};

function Ways({ model, connect }: { model: ConnectModel; connect: IConnect }): React.ReactElement {
  const { trans } = useHost();
  const [way, setWay] = React.useState<Way>('command-line');
  const id = React.useId();
  const labels: Record<Way, string> = {
    'command-line': trans.__('Command line'),
    vscode: 'VS Code',
    pycharm: 'PyCharm',
    gateway: 'JetBrains Gateway',
    'visual-studio': 'Visual Studio',
    files: 'WinSCP, FileZilla',
    ports: trans.__('Ports'),
    keys: trans.__('My keys')
  };
  const guide = guideProps(connect);
  const Guide = GUIDES[way];
  return (
    <>
      {!connect.isolated && (
        <p role="note" className="pai-Connect-note">
          {trans.__('This task runs without a container: what you do in it, you do on that machine.')}
        </p>
      )}
      <WayTabs id={id} labels={labels} way={way} onWay={setWay} label={trans.__('Ways in')} />
      <div className="pai-Connect-way" role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${way}`} tabIndex={0}>
        {way === 'keys' ? (
          <KeysGuide model={model} />
        ) : connect.off !== null || guide === null ? (
          <p role="alert" className="pai-Page-error">
            {trans.__('There is no way into this task.')} {connect.off}
          </p>
        ) : way === 'ports' ? (
          <PortsGuide connect={connect} />
        ) : (
          Guide && <Guide {...guide} />
        )}
      </div>
    </>
  );
}

function WayTabs(props: {
  id: string;
  label: string;
  labels: Record<Way, string>;
  way: Way;
  onWay: (way: Way) => void;
}): React.ReactElement {
  const { id, labels, way, onWay } = props;
  const ways = Object.keys(labels) as Way[];
  const buttons = React.useRef<Partial<Record<Way, HTMLButtonElement | null>>>({});
  const onKeyDown = (event: React.KeyboardEvent) => {
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      Home: -ways.indexOf(way),
      End: -1 - ways.indexOf(way)
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = ways[(ways.indexOf(way) + step + ways.length) % ways.length]!;
      onWay(next);
      buttons.current[next]?.focus();
    }
  };
  return (
    <div role="tablist" aria-label={props.label} className="pai-Connect-tabs" onKeyDown={onKeyDown}>
      {ways.map(each => (
        <button
          key={each}
          type="button"
          role="tab"
          id={`${id}${each}`}
          ref={button => {
            buttons.current[each] = button;
          }}
          aria-selected={each === way}
          aria-controls={`${id}panel`}
          tabIndex={each === way ? 0 : -1}
          onClick={() => onWay(each)}
        >
          <span data-label={labels[each]}>{labels[each]}</span>
        </button>
      ))}
    </div>
  );
}

/** All ports of a task, with what may be done with them. */
function PortsGuide({ connect }: { connect: IConnect }): React.ReactElement {
  const { client, trans } = useHost();
  if (connect.ports.length === 0) {
    return <p>{trans.__('This task has no ports. They are listed as portList in a task role.')}</p>;
  }
  return (
    <>
      <p>{trans.__('Each link opens what listens on that port of the task; only you can open it.')}</p>
      <table className="pai-Values">
        <caption>{trans.__('Ports')}</caption>
        <tbody>
          {connect.ports.map(({ label, port, url }) => (
            <tr key={`${label} ${port}`}>
              <th scope="row">
                <PortLink label={label} url={client.link(url)} title={trans.__('Open port %1', port)} />
              </th>
              <td>{port}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** Lists the keys of the task's owner: seen, added and removed. */
function KeysGuide({ model }: { model: ConnectModel }): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const [typed, setTyped] = React.useState('');
  const [busy, setBusy] = React.useState(false);
  React.useEffect(() => void model.refreshKeys(), [model]);
  const add = async (event: React.FormEvent) => {
    event.preventDefault();
    setBusy(true);
    if (await model.addKey(typed.trim())) {
      setTyped('');
    }
    setBusy(false);
  };
  const remove = async (key: IPublicKey) => {
    const question = {
      title: trans.__('Remove this key?'),
      text: trans.__('“%1” opens no task any more. What is open stays open.', key.comment || key.fingerprint),
      accept: trans.__('Remove'),
      warn: true
    };
    if (await confirm(host, question)) {
      await model.removeKey(key);
    }
  };
  return (
    <>
      <p>
        {trans.__('With a key that you register here, ssh opens all your tasks, now and later, without a download.')}
      </p>
      <PageError text={model.keysError} />
      {model.keys === null ? (
        !model.keysError && <p role="status">{trans.__('Asking for your keys …')}</p>
      ) : model.keys.length === 0 ? (
        <p role="status">{trans.__('You have registered no key yet.')}</p>
      ) : (
        <table className="pai-Values">
          <caption>{trans.__('Registered keys')}</caption>
          <tbody>
            {model.keys.map(key => (
              <tr key={key.fingerprint}>
                <th scope="row">{key.comment || key.type}</th>
                <td>
                  {key.fingerprint}
                  <span className="pai-mod-secondary">
                    {key.type} · <LocalTime time={new Date(key.addedTime)} language={language} form="day" />
                  </span>
                </td>
                <td>
                  <TextButton
                    small
                    aria-label={trans.__('Remove “%1”', key.comment || key.fingerprint)}
                    onClick={() => void remove(key)}
                  >
                    {trans.__('Remove')}
                  </TextButton>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <form className="pai-Keys-add" onSubmit={event => void add(event)}>
        <label>
          {trans.__('Public key (the line in ~/.ssh/id_ed25519.pub)')}
          <textarea
            className="pai-Input"
            rows={3}
            spellCheck={false}
            placeholder="ssh-ed25519 AAAA… me@laptop"
            value={typed}
            onChange={event => setTyped(event.target.value)}
          />
        </label>
        <TextButton type="submit" accept disabled={busy || typed.trim() === ''}>
          {trans.__('Register')}
        </TextButton>
      </form>
    </>
  );
}
