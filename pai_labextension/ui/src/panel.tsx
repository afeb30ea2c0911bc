// My jobs, in the main area: what each one does, why it waits, how it ended; stop. Beside them queues and machines.

import { Dialog, ReactWidget, showDialog, showErrorMessage, UseSignal } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { addIcon, refreshIcon, terminalIcon } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { JobPorts } from './access/jobPorts';
import { JobPortsView } from './access/jobPortsView';
import { IJob } from './api';
import { TextButton } from './buttons';
import { isActive, isOpen, key } from './jobs';
import { Machines } from './machines';
import { MachinesView } from './machinesView';
import { IJobsModel } from './model';
import { ColumnTitles, PageError } from './page';
import { QueueModel } from './queue';
import { QueueView } from './queueView';
import { stateLabel } from './states';
import { LocalTime } from './times';

interface IListProps {
  model: IJobsModel;
  queue: QueueModel;
  machines: Machines;
  trans: TranslationBundle;
  /** Of dates, as browsers name it ("zh-CN"). */
  language: string;
  onNewJob: () => void;
  ports: JobPorts;
  /** Show more of a job. */
  onWatch: (job: IJob) => void;
  /** Open a terminal in one of its tasks. */
  onTerminal: (job: IJob) => void;
  /** Show how to reach one of its tasks. */
  onConnect: (job: IJob) => void;
}

/** What the panel shows. */
type Page = 'jobs' | 'queue' | 'machines';

/** Shows a person's jobs, as the model knows them. */
export class JobsPanel extends ReactWidget {
  constructor(private readonly props: IListProps) {
    super();
    this.addClass('pai-Page');
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.setShown(true);
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.setShown(this.isVisible);
  }

  protected onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this.setShown(false);
  }

  protected onBeforeDetach(message: Message): void {
    super.onBeforeDetach(message);
    this.setShown(false);
  }

  protected render(): React.ReactElement {
    const { model, queue, machines, ports } = this.props;
    return (
      <UseSignal signal={model.changed}>
        {() => (
          <UseSignal signal={queue.changed}>
            {() => (
              <UseSignal signal={machines.changed}>
                {() => (
                  <UseSignal signal={ports.changed}>
                    {() => <JobsView {...this.props} page={this.page} onPage={page => this.turnTo(page)} />}
                  </UseSignal>
                )}
              </UseSignal>
            )}
          </UseSignal>
        )}
      </UseSignal>
    );
  }

  private turnTo(page: Page): void {
    this.page = page;
    this.setShown(this.isVisible);
    this.update();
  }

  /** Only what is in view is asked for. */
  private setShown(shown: boolean): void {
    this.props.model.setListed(shown && this.page === 'jobs');
    this.props.ports.setShown(shown && this.page === 'jobs');
    this.props.queue.setShown(shown && this.page === 'queue');
    this.props.machines.setShown(shown && this.page === 'machines');
  }

  private page: Page = 'jobs';
}

function JobsView(props: IListProps & { page: Page; onPage: (page: Page) => void }): React.ReactElement {
  const { model, queue, machines, trans, onNewJob, page, onPage } = props;
  const [busy, setBusy] = React.useState(false);
  const refresh = async () => {
    setBusy(true);
    await { jobs: model, queue, machines }[page].refresh();
    setBusy(false);
  };
  return (
    <>
      <header className="pai-Page-header">
        <h2>{trans.__('PAI jobs')}</h2>
        <div role="group" aria-label={trans.__('What is shown')} className="pai-Jobs-pages">
          <PageButton shown={page === 'jobs'} label={trans.__('My jobs')} onClick={() => onPage('jobs')} />
          <PageButton shown={page === 'queue'} label={trans.__('Queue')} onClick={() => onPage('queue')} />
          <PageButton shown={page === 'machines'} label={trans.__('Machines')} onClick={() => onPage('machines')} />
        </div>
        <TextButton icon={addIcon} onClick={onNewJob}>
          {trans.__('New PAI job')}
        </TextButton>
        <TextButton icon={refreshIcon} disabled={busy} onClick={() => void refresh()}>
          {trans.__('Refresh')}
        </TextButton>
      </header>
      {page === 'jobs' && <JobsPage {...props} />}
      {page === 'queue' && <QueueView queue={queue} trans={trans} />}
      {page === 'machines' && <MachinesView machines={machines} trans={trans} />}
    </>
  );
}

function PageButton(props: { shown: boolean; label: string; onClick: () => void }): React.ReactElement {
  return (
    <TextButton accept={props.shown} aria-pressed={props.shown} onClick={props.onClick}>
      {props.label}
    </TextButton>
  );
}

function JobsPage(props: IListProps): React.ReactElement {
  const { model, trans } = props;
  return (
    <>
      <PageError text={model.error} />
      {model.jobs === null ? (
        !model.error && <p role="status">{trans.__('Asking for your jobs …')}</p>
      ) : model.jobs.length === 0 ? (
        <p role="status">{trans.__('You have no jobs yet. “New PAI job” opens a form to submit one.')}</p>
      ) : (
        <JobsTable {...props} jobs={model.jobs} />
      )}
    </>
  );
}

function JobsTable(props: IListProps & { jobs: readonly IJob[] }): React.ReactElement {
  const { jobs, trans } = props;
  return (
    <div className="pai-Table-scroll" tabIndex={0} role="region" aria-label={trans.__('PAI jobs')}>
      <table className="pai-Table">
        <ColumnTitles
          columns={[
            [trans.__('Name')],
            [trans.__('State')],
            [trans.__('GPUs'), 'number'],
            [trans.__('Priority'), 'number'],
            [trans.__('Place'), 'number'],
            [trans.__('Created')],
            [trans.__('Exit code'), 'number'],
            [trans.__('Why it waits'), 'reason'],
            [trans.__('Actions'), 'buttons']
          ]}
        />
        <tbody>
          {jobs.map(job => (
            <JobRow key={key(job)} {...props} job={job} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function JobRow(props: IListProps & { job: IJob }): React.ReactElement {
  const { job, model, ports, trans, language } = props;
  return (
    <tr>
      <th scope="row">
        {job.name}
        {model.isOwnServer(job) && <span className="pai-mod-secondary">{trans.__('this notebook server')}</span>}
        {isOpen(job) && <JobPortsView job={job} ports={ports} trans={trans} />}
      </th>
      <td className="pai-Jobs-state">
        <span className="pai-State" data-state={job.state}>
          {stateLabel(job, trans)}
        </span>
      </td>
      <td className="pai-mod-number">{job.totalGpuNumber}</td>
      <td className="pai-mod-number">{job.priority}</td>
      <td className="pai-mod-number">{job.queuePlace ?? ''}</td>
      <td>
        <LocalTime time={new Date(job.createdTime)} language={language} form="minutes" />
      </td>
      <td className="pai-mod-number">{job.appExitCode ?? ''}</td>
      <td className="pai-Table-reason">{model.reason(job) ?? ''}</td>
      <td>
        <JobButtons {...props} />
      </td>
    </tr>
  );
}

function JobButtons(props: IListProps & { job: IJob }): React.ReactElement {
  const { job, model, trans, onWatch, onTerminal, onConnect } = props;
  return (
    <span className="pai-Jobs-actions">
      <TextButton
        small
        aria-label={trans.__('Show “%1”', job.name)}
        title={trans.__('Its logs, tasks and attempts, and what it uses')}
        onClick={() => onWatch(job)}
      >
        {trans.__('Show')}
      </TextButton>
      {isOpen(job) && (
        <>
          <TextButton
            small
            icon={terminalIcon}
            aria-label={trans.__('Open a terminal in “%1”', job.name)}
            title={trans.__('Open a terminal in “%1”', job.name)}
            onClick={() => onTerminal(job)}
          />
          <TextButton
            small
            aria-label={trans.__('Connect to “%1”', job.name)}
            title={trans.__('SSH, VS Code, PyCharm and other programs: how they reach a task')}
            onClick={() => onConnect(job)}
          >
            {trans.__('Connect')}
          </TextButton>
        </>
      )}
      {isActive(job) && (
        <TextButton small aria-label={trans.__('Stop “%1”', job.name)} onClick={() => void stop(job, model, trans)}>
          {trans.__('Stop')}
        </TextButton>
      )}
    </span>
  );
}

async function stop(job: IJob, model: IJobsModel, trans: TranslationBundle): Promise<void> {
  const answer = await showDialog({
    title: trans.__('Stop “%1”?', job.name),
    body: model.isOwnServer(job)
      ? trans.__('This is the notebook server you are using. It ends at once, with all its kernels.')
      : trans.__('Its tasks end at once and its GPUs become free. Logs are kept. This cannot be undone.'),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep it') }),
      Dialog.warnButton({ label: trans.__('Stop the job') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  try {
    await model.stop(job);
  } catch (error) {
    await showErrorMessage(trans.__('“%1” was not stopped', job.name), error as Error);
  }
}
