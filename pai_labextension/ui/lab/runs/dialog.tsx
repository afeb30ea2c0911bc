// What a file that runs as a job gets: its image and resources, its parameters, where its results go.

import * as React from 'react';

import { Client, IRunPlan, IRunRequest, ISubmitted } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { askAndSubmit, Chooser, ISubmitter } from '../submit/chooser';
import { localText } from '../../console/kit/time';
import { RunForm } from './form';

/** The job that was submitted, or where it is to run again and again, its schedule. */
export interface IRunning extends ISubmitted {
  readonly scheduled: boolean;
}

/**
 * Ask how a file is to run, and submit it. Resolves with the job, or `null` when it was given up.
 *
 * @param path - of the file, below what the file browser shows
 * @param language - of dates, as browsers name it ("zh-CN")
 */
export async function runAsJob(
  path: string,
  client: Client,
  language: string,
  trans: ITranslation
): Promise<IRunning | null> {
  const submitter: ISubmitter<IRunRequest, IRunPlan> = {
    plan: asked => client.planRun(asked),
    submit: (asked, onProgress, signal) => client.runFile(asked, onProgress, signal)
  };
  const done = await askAndSubmit<IRunRequest, IRunPlan>({
    request: { path },
    title: trans.__('Run %1 as a job', path.split('/').pop()!),
    accept: ({ schedule }) => (schedule === undefined ? trans.__('Run') : trans.__('Make the schedule')),
    focus: 'input',
    body: (request, problem) => new RunChooser(request, problem, submitter, language, trans),
    submitter,
    trans
  });
  return done && { ...done.submitted, scheduled: done.request.schedule !== undefined };
}

class RunChooser extends Chooser<IRunRequest, IRunPlan> {
  constructor(
    request: IRunRequest,
    problem: string,
    submitter: ISubmitter<IRunRequest, IRunPlan>,
    private readonly language: string,
    trans: ITranslation
  ) {
    super(request, problem, submitter, trans);
    this.addClass('pai-Run');
  }

  protected render(): React.ReactElement {
    const { request, plan, problem, language, trans } = this;
    return (
      <>
        {plan && <RunForm {...{ request, plan, language, trans }} onChange={changed => this.change(changed)} />}
        <Outlook {...{ plan, problem, language, trans }} scheduled={request.schedule !== undefined} />
      </>
    );
  }
}

/** What is wrong, or when it would start. */
function Outlook(props: {
  plan: IRunPlan | null;
  problem: string;
  scheduled: boolean;
  language: string;
  trans: ITranslation;
}): React.ReactElement {
  const { plan, problem, scheduled, language, trans } = props;
  if (problem) {
    return (
      <p role="alert" className="pai-Reason">
        {problem}
      </p>
    );
  }
  if (plan === null) {
    return <p role="status">{trans.__('Asking the cluster …')}</p>;
  }
  const sentences = plan.sentences.join(' ');
  const times = plan.times.map(time => localText(new Date(time), language, 'minutes'));
  return (
    <p role={plan.fits === 'never' ? 'alert' : 'status'} className="pai-Run-outlook" data-fits={plan.fits}>
      {times.length > 0 && (
        <>
          {trans.__('It runs next: %1', times.join(' · '))}
          <br />
        </>
      )}
      {scheduled && plan.fits !== 'never' ? trans.__('If a run were due now: %1', sentences) : sentences}
    </p>
  );
}
