// “Connect”: all ways into one task on one page, ready to click or to copy, and a button that tries the connection.

import { ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { IConnect } from '../../console/data/client';
import { OnSignal } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { PageError } from '../../console/kit/status';
import { ConnectModel } from './connectModel';
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
import { KeysGuide } from './keys';
import { PortsGuide } from './ports';

interface IPanelProps {
  readonly model: ConnectModel;
  readonly trans: ITranslation;
  /** Of dates, as browsers name it ("zh-CN"). */
  readonly language: string;
  readonly onTerminal: () => void;
}

/** Shows how to reach a task, as the model knows it. */
export class ConnectPanel extends ReactWidget {
  constructor(private readonly props: IPanelProps) {
    super();
    this.addClass('pai-Page');
    this.addClass('pai-Connect');
    void props.model.refresh();
  }

  get model(): ConnectModel {
    return this.props.model;
  }

  dispose(): void {
    this.props.model.dispose();
    super.dispose();
  }

  protected render(): React.ReactElement {
    return <OnSignal signal={this.props.model.changed}>{() => <ConnectView {...this.props} />}</OnSignal>;
  }
}

function ConnectView(props: IPanelProps): React.ReactElement {
  const { model, trans, onTerminal } = props;
  const { task, connect, checked } = model;
  return (
    <>
      <div className="pai-Page-header">
        <h2>{trans.__('Connect to %1 of “%2”', task.task, task.job)}</h2>
        <TextButton icon="terminal" onClick={onTerminal}>
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
        <Ways {...props} connect={connect} />
      )}
    </>
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

function Ways(props: IPanelProps & { connect: IConnect }): React.ReactElement {
  const { model, connect, trans, language } = props;
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
  const guide = guideProps(model, connect, trans);
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
          <KeysGuide model={model} trans={trans} language={language} />
        ) : connect.off !== null || guide === null ? (
          <p role="alert" className="pai-Page-error">
            {trans.__('There is no way into this task.')} {connect.off}
          </p>
        ) : way === 'ports' ? (
          <PortsGuide model={model} connect={connect} trans={trans} />
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
