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

/**
 * Ask how a file is to run, and submit it. Resolves with the job, or `null` when it was given up.
 *
 * @param path - of the file, below what the file browser shows
 */
export async function runAsJob(path: string, client: RunClient, trans: TranslationBundle): Promise<ISubmitted | null> {
  let problem = '';
  let request: IRunRequest = { path };
  for (;;) {
    const chooser = new RunChooser(request, problem, client, trans);
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
      return result;
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
    const { request, plan, problem, trans } = this;
    return (
      <>
        {plan && <RunForm request={request} plan={plan} trans={trans} onChange={changed => this.change(changed)} />}
        <Outlook plan={plan} problem={problem} trans={trans} />
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
function Outlook(props: { plan: IRunPlan | null; problem: string; trans: TranslationBundle }): React.ReactElement {
  const { plan, problem, trans } = props;
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
  return (
    <p role={plan.fits === 'never' ? 'alert' : 'status'} className="pai-Run-outlook" data-fits={plan.fits}>
      {plan.sentences.join(' ')}
    </p>
  );
}
