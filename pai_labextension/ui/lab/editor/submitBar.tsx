// Always in sight below form and JSON: what is asked for against what is free, whether it starts, and Submit.

import { ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { OnSignal } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { amounts, askedFor, forecastText, IAmount } from './amounts';
import { JobEditorModel } from './model';
import { Path } from './text';

/** What the bar can have done. */
export interface ISubmitActions {
  /** Submit, or show what keeps it from being submitted. */
  readonly submit: () => void;
  /** Choose a folder of the notebook server, and submit with its code. */
  readonly submitWithCode: () => void;
  /** Open the page of the job that was submitted. */
  readonly open: (name: string) => void;
  /** Go to the input of a field. */
  readonly goTo: (path: Path) => void;
}

export class SubmitBar extends ReactWidget {
  constructor(
    private readonly model: JobEditorModel,
    private readonly trans: ITranslation,
    private readonly actions: ISubmitActions
  ) {
    super();
    this.addClass('pai-SubmitBar');
  }

  protected render(): React.ReactElement {
    const { model, trans, actions } = this;
    return <OnSignal signal={model.changed}>{() => <Bar model={model} trans={trans} actions={actions} />}</OnSignal>;
  }
}

interface IBarProps {
  model: JobEditorModel;
  trans: ITranslation;
  actions: ISubmitActions;
}

function Bar({ model, trans, actions }: IBarProps): React.ReactElement {
  const { submitted } = model;
  const disabled = model.isSubmitting || submitted !== null || model.obstacle !== null;
  return (
    <section aria-label={trans.__('Submit')}>
      <Amounts model={model} trans={trans} />
      <div className="pai-SubmitBar-line">
        <TextButton accept disabled={disabled} onClick={actions.submit}>
          {trans.__('Submit job')}
        </TextButton>
        <TextButton
          title={trans.__('Choose a folder of this notebook server whose code goes along')}
          disabled={disabled}
          onClick={actions.submitWithCode}
        >
          {trans.__('Submit with code …')}
        </TextButton>
        <div className="pai-SubmitBar-state" role="status">
          <State model={model} trans={trans} actions={actions} />
        </div>
      </div>
    </section>
  );
}

/** How it stands with the job: what came of it, all that is known to be wrong with it, or when it would start. */
function State({ model, trans, actions }: IBarProps): React.ReactElement | null {
  const { answer, problems, submitted } = model;
  if (submitted !== null) {
    return (
      <>
        <span className="pai-mod-good">{trans.__('Submitted: %1', submitted)}</span>
        <TextButton small onClick={() => actions.open(submitted)}>
          {trans.__('Open its page')}
        </TextButton>
      </>
    );
  }
  if (model.isSubmitting) {
    return <span>{trans.__('Submitting …')}</span>;
  }
  if (problems.length === 0 && !answer) {
    return <span>{trans.__('Asking the scheduler …')}</span>;
  }
  return (
    <>
      {problems.length > 0 && (
        <ul className="pai-SubmitBar-problems" aria-label={trans.__('Problems')}>
          {problems.map(({ kind, before, places, after }, index) => (
            <li key={index} className={{ bad: 'pai-mod-bad', needed: undefined, warn: 'pai-mod-warn' }[kind]}>
              {before && <span>{before}</span>}
              {places.map(path => (
                <PlaceButton key={path.join()} path={path} model={model} trans={trans} actions={actions} />
              ))}
              {after && <span>{after}</span>}
            </li>
          ))}
        </ul>
      )}
      {answer && (
        <span className={{ now: 'pai-mod-good', later: 'pai-mod-warn', never: 'pai-mod-bad' }[answer.fits]}>
          {forecastText(answer, trans)}
        </span>
      )}
    </>
  );
}

/** Names a field, and goes there. */
function PlaceButton({ path, model, trans, actions }: IBarProps & { path: Path }): React.ReactElement {
  return (
    <button type="button" className="pai-LinkButton" onClick={() => actions.goTo(path)}>
      {placeText(path, model, trans)}
    </button>
  );
}

/** Name a field as its label does, and its task role. */
export function placeText(path: Path, model: JobEditorModel, trans: ITranslation): string {
  const { title } = model.schema.words(path);
  const role = path[0] === 'taskRoles' && typeof path[1] === 'number' ? path[1] : null;
  if (role === null || path.length < 3) {
    return path.length === 0 ? trans.__('the job') : title;
  }
  const name = model.value(['taskRoles', role, 'name']);
  return trans.__('%1 of %2', title, typeof name === 'string' && name ? name : trans.__('Task role %1', role + 1));
}

/** What is asked for against what is free, in figures and as bars. */
function Amounts({ model, trans }: { model: JobEditorModel; trans: ITranslation }): React.ReactElement {
  const nodes = model.cluster.answer?.nodes ?? [];
  const { tasks } = askedFor(model.config);
  return (
    <dl className="pai-Amounts">
      <div>
        <dt>{trans.__('Asks for')}</dt>
        <dd>{trans._n('%1 task', '%1 tasks', tasks)}</dd>
      </div>
      {amounts(model.config, nodes).map(amount => (
        <Amount key={amount.kind} amount={amount} trans={trans} isKnown={nodes.length > 0} />
      ))}
    </dl>
  );
}

function Amount({
  amount,
  trans,
  isKnown
}: {
  amount: IAmount;
  trans: ITranslation;
  isKnown: boolean;
}): React.ReactElement {
  const { kind, asked, free, total } = amount;
  const names = { gpus: trans.__('GPUs'), cpus: trans.__('CPUs'), memoryMB: trans.__('Memory') };
  const text = (value: number) =>
    kind === 'memoryMB' ? trans.__('%1 GB', String(Math.round((10 * value) / 1024) / 10)) : String(value);
  const isTooMuch = isKnown && asked > free;
  return (
    <div className={isTooMuch ? 'pai-mod-over' : undefined}>
      <dt>{names[kind]}</dt>
      <dd>
        {isKnown ? trans.__('%1 (%2 of %3 free)', text(asked), text(free), text(total)) : text(asked)}
        <span className="pai-Amounts-bar" aria-hidden="true">
          <span style={{ width: `${free > 0 ? Math.min(100, (100 * asked) / free) : asked > 0 ? 100 : 0}%` }} />
        </span>
      </dd>
    </div>
  );
}
