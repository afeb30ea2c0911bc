// The list of my jobs, in the main area: what each one does, why it waits, how it ended; stop.

import { Dialog, ReactWidget, showDialog, showErrorMessage, UseSignal } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { addIcon, refreshIcon } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { IJob, JobState } from './api';
import { isActive, key } from './jobs';
import { IJobsModel } from './model';

interface IListProps {
  model: IJobsModel;
  trans: TranslationBundle;
  /** Of dates, as browsers name it ("zh-CN"). */
  language: string;
  onNewJob: () => void;
}

/** Shows a person's jobs, as the model knows them. */
export class JobsPanel extends ReactWidget {
  constructor(private readonly props: IListProps) {
    super();
    this.addClass('pai-Jobs');
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.props.model.setListed(true);
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.props.model.setListed(this.isVisible);
  }

  protected onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this.props.model.setListed(false);
  }

  protected onBeforeDetach(message: Message): void {
    super.onBeforeDetach(message);
    this.props.model.setListed(false);
  }

  protected render(): React.ReactElement {
    return (
      <UseSignal signal={this.props.model.changed}>{() => <JobsView {...this.props} />}</UseSignal>
    );
  }
}

function JobsView(props: IListProps): React.ReactElement {
  const { model, trans, onNewJob } = props;
  const [busy, setBusy] = React.useState(false);
  const refresh = async () => {
    setBusy(true);
    await model.refresh();
    setBusy(false);
  };
  return (
    <>
      <header className="pai-Jobs-header">
        <h2>{trans.__('PAI jobs')}</h2>
        <button type="button" className="jp-Button jp-mod-styled pai-Jobs-button" onClick={onNewJob}>
          <addIcon.react tag="span" />
          {trans.__('New PAI job')}
        </button>
        <button
          type="button"
          className="jp-Button jp-mod-styled pai-Jobs-button"
          disabled={busy}
          onClick={() => void refresh()}
        >
          <refreshIcon.react tag="span" />
          {trans.__('Refresh')}
        </button>
      </header>
      {model.error && (
        <p role="alert" className="pai-Jobs-error">
          {model.error}
        </p>
      )}
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
    <div className="pai-Jobs-scroll" tabIndex={0} role="region" aria-label={trans.__('PAI jobs')}>
      <table className="pai-Jobs-table">
        <thead>
          <tr>
            <th scope="col">{trans.__('Name')}</th>
            <th scope="col">{trans.__('State')}</th>
            <th scope="col" className="pai-mod-number">
              {trans.__('GPUs')}
            </th>
            <th scope="col">{trans.__('Created')}</th>
            <th scope="col" className="pai-mod-number">
              {trans.__('Exit code')}
            </th>
            <th scope="col">{trans.__('Why it waits')}</th>
            <th scope="col">
              <span className="pai-mod-unseen">{trans.__('Actions')}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {jobs.map(job => (
            <JobRow key={key(job)} {...props} job={job} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function JobRow({ job, model, trans, language }: IListProps & { job: IJob }): React.ReactElement {
  const created = new Date(job.createdTime);
  return (
    <tr>
      <th scope="row">
        {job.name}
        {model.isOwnServer(job) && <span className="pai-Jobs-own">{trans.__('this notebook server')}</span>}
      </th>
      <td>
        <span className="pai-State" data-state={job.state}>
          {stateLabel(job.state, trans)}
        </span>
      </td>
      <td className="pai-mod-number">{job.totalGpuNumber}</td>
      <td>
        <time dateTime={created.toISOString()}>
          {created.toLocaleString(language, { dateStyle: 'medium', timeStyle: 'short' })}
        </time>
      </td>
      <td className="pai-mod-number">{job.appExitCode ?? ''}</td>
      <td className="pai-Jobs-reason">{model.reason(job) ?? ''}</td>
      <td>
        {isActive(job) && (
          <button
            type="button"
            className="jp-Button jp-mod-styled pai-Jobs-button"
            aria-label={trans.__('Stop “%1”', job.name)}
            onClick={() => void stop(job, model, trans)}
          >
            {trans.__('Stop')}
          </button>
        )}
      </td>
    </tr>
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

function stateLabel(state: JobState, trans: TranslationBundle): string {
  switch (state) {
    case 'WAITING':
      return trans.__('Waiting');
    case 'RUNNING':
      return trans.__('Running');
    case 'SUCCEEDED':
      return trans.__('Succeeded');
    case 'FAILED':
      return trans.__('Failed');
    case 'STOPPED':
      return trans.__('Stopped');
  }
}
