// What goes along with a job is asked, then the job is submitted.

import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Debouncer } from '@lumino/polling';
import * as React from 'react';

import { CodeClient, ISubmitRequest, IPlan, ISubmitted } from './client';
import { Files, PatternsInput } from './files';
import { send } from './send';

/** ms after the last key before the files are looked for. */
const TYPING = 400;

/** Ask what goes along with a job, and submit it. Resolves with the job, or `null` when it was given up. */
export async function submitWithCode(
  request: ISubmitRequest,
  client: CodeClient,
  trans: TranslationBundle
): Promise<ISubmitted | null> {
  let problem = '';
  for (;;) {
    const chooser = new CodeChooser(request, problem, client, trans);
    const answer = await new Dialog({
      title: trans.__('Submit to PAI with this folder’s code'),
      body: chooser,
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Submit') })]
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

class CodeChooser extends ReactWidget implements Dialog.IBodyWidget<ISubmitRequest> {
  constructor(
    request: ISubmitRequest,
    private problem: string,
    private readonly client: CodeClient,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('pai-Code');
    this.request = request;
    this.disposed.connect(() => this.looking.dispose());
    void this.look();
  }

  getValue(): ISubmitRequest {
    return this.request;
  }

  protected render(): React.ReactElement {
    const { request, plan, problem, trans } = this;
    return (
      <>
        <p>{trans.__('In each task the folder is %1: a command begins with cd %1.', '$PAI_JOB_NAME')}</p>
        <PatternsInput
          label={trans.__('Files that go along (one pattern in a line)')}
          value={request.include ?? plan?.include ?? []}
          onChange={include => this.change({ include })}
        />
        <PatternsInput
          label={trans.__('Except')}
          value={request.exclude ?? plan?.exclude ?? []}
          onChange={exclude => this.change({ exclude })}
        />
        <label className="pai-Code-check">
          <input
            type="checkbox"
            checked={request.generateName ?? plan?.generateName ?? false}
            onChange={event => this.change({ generateName: event.target.checked })}
          />
          {trans.__('Append eight characters to the name, so that it is new')}
        </label>
        {problem ? (
          <p role="alert" className="pai-Reason">
            {problem}
          </p>
        ) : (
          <Files files={plan?.files ?? null} folder={plan?.folder} trans={trans} />
        )}
      </>
    );
  }

  private change(changes: Partial<ISubmitRequest>): void {
    this.request = { ...this.request, ...changes };
    this.update();
    void this.looking.invoke();
  }

  private async look(): Promise<void> {
    const asked = this.request;
    try {
      const plan = await this.client.plan(asked);
      if (asked === this.request) {
        const { include, exclude, generateName } = plan;
        this.plan = plan;
        this.request = { include, exclude, generateName, ...asked };
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
  private request: ISubmitRequest;
  private plan: IPlan | null = null;
  private first = true;
}
