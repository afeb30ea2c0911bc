// What goes along with a job is asked, then the job is submitted.

import * as React from 'react';

import { Client, IPlan, ISubmitRequest, ISubmitted } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { askAndSubmit, Chooser, ISubmitter } from './chooser';
import { Files, PatternsInput } from './files';

/** Ask what goes along with a job, and submit it. Resolves with the job, or `null` when it was given up. */
export async function submitWithCode(
  request: ISubmitRequest,
  client: Client,
  trans: ITranslation
): Promise<ISubmitted | null> {
  const submitter: ISubmitter<ISubmitRequest, IPlan> = {
    plan: asked => client.planCode(asked),
    submit: (asked, onProgress, signal) => client.submitCode(asked, onProgress, signal)
  };
  const done = await askAndSubmit({
    request,
    title: trans.__('Submit to PAI with this folder’s code'),
    accept: () => trans.__('Submit'),
    body: (request, problem) => new CodeChooser(request, problem, submitter, trans),
    submitter,
    trans
  });
  return done?.submitted ?? null;
}

class CodeChooser extends Chooser<ISubmitRequest, IPlan> {
  protected render(): React.ReactElement {
    const { request, plan, problem, trans } = this;
    return (
      <>
        <p>{trans.__('In each task the folder is %1: a command begins with cd %1.', '$PAI_JOB_NAME')}</p>
        <PatternsInput
          label={trans.__('Files that go along (one pattern in a line)')}
          value={request.include ?? plan?.include ?? []}
          onChange={include => this.changeSome({ include })}
        />
        <PatternsInput
          label={trans.__('Except')}
          value={request.exclude ?? plan?.exclude ?? []}
          onChange={exclude => this.changeSome({ exclude })}
        />
        <label className="pai-Code-check">
          <input
            type="checkbox"
            checked={request.generateName ?? plan?.generateName ?? false}
            onChange={event => this.changeSome({ generateName: event.target.checked })}
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

  protected filledIn(request: ISubmitRequest, plan: IPlan): ISubmitRequest {
    const { include, exclude, generateName } = plan;
    return { include, exclude, generateName, ...request };
  }

  private changeSome(changes: Partial<ISubmitRequest>): void {
    this.change({ ...this.request, ...changes });
  }
}
