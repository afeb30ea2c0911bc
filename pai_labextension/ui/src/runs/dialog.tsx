// What a file that runs as a job gets: its image and resources, its parameters, where its results go.

import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Debouncer } from '@lumino/polling';
import * as React from 'react';

import { ISubmitted } from '../submit/client';
import { send } from '../submit/send';
import { IRunPlan, IRunRequest, RunClient } from './client';
import { RunForm } from './form';

/** ms after the last key before it is asked what would come of it. */
const TYPING = 400;

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
  client: RunClient,
  language: string,
  trans: TranslationBundle
): Promise<IRunning | null> {
  let problem = '';
  let request: IRunRequest = { path };
  for (;;) {
    const chooser = new RunChooser(request, problem, client, language, trans);
    const answer = await new Dialog({
      title: trans.__('Run %1 as a job', path.split('/').pop()!),
      body: chooser,
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Run') })],
      focusNodeSelector: 'input'
    }).launch();
    if (!answer.button.accept) {
      return null;
    }
    request = chooser.getValue();
    const result = await send((tell, signal) => client.submit(request, tell, signal), trans);
    if (typeof result !== 'string') {
      return result && { ...result, scheduled: request.schedule !== undefined };
    }
    // what was typed stays, beside what was wrong with it
    problem = result;
  }
}

class RunChooser extends ReactWidget implements Dialog.IBodyWidget<IRunRequest> {
  constructor(
    private request: IRunRequest,
    private problem: string,
    private readonly client: RunClient,
    private readonly language: string,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('pai-Code');
    this.addClass('pai-Run');
    this.disposed.connect(() => this.looking.dispose());
    void this.look();
  }

  getValue(): IRunRequest {
    return this.request;
  }

  protected render(): React.ReactElement {
    const { request, plan, problem, language, trans } = this;
    return (
      <>
        {plan && <RunForm {...{ request, plan, language, trans }} onChange={changed => this.change(changed)} />}
        <Outlook {...{ plan, problem, trans }} scheduled={request.schedule !== undefined} />
      </>
    );
  }

  private change(request: IRunRequest): void {
    this.request = request;
    this.update();
    void this.looking.invoke();
  }

  private async look(): Promise<void> {
    const asked = this.request;
    try {
      const plan = await this.client.plan(asked);
      if (asked === this.request) {
        this.plan = plan;
        this.problem = this.first ? this.problem : '';
      }
    } catch (error) {
      if (asked === this.request) {
        this.problem = (error as Error).message;
      }
    }
    this.first = false;
    this.update();
  }

  private readonly looking = new Debouncer(() => this.look(), TYPING);
  private plan: IRunPlan | null = null;
  private first = true;
}

/** What is wrong, or when it would start. */
function Outlook(props: {
  plan: IRunPlan | null;
  problem: string;
  scheduled: boolean;
  trans: TranslationBundle;
}): React.ReactElement {
  const { plan, problem, scheduled, trans } = props;
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
  return (
    <p role={plan.fits === 'never' ? 'alert' : 'status'} className="pai-Run-outlook" data-fits={plan.fits}>
      {scheduled && plan.fits !== 'never' ? trans.__('If a run were due now: %1', sentences) : sentences}
    </p>
  );
}
