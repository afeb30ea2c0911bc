// What is asked for against what is free, whether the job starts, and Submit: always in sight below form and JSON.

import * as React from 'react';

import { INode, IValidation } from '../data/client';
import { gpuTypes, IShare, share, sum, takesJobs } from '../data/cluster';
import { ITranslation, useHost } from '../host';
import { TextButton } from '../kit/button';
import { JobEditorModel } from './model';
import { isObject, Path, valueAt } from './text';

/** What all tasks of a job ask for together. */
export interface IAsked {
  readonly tasks: number;
  readonly gpus: number;
  readonly cpus: number;
  readonly memoryMB: number;
}

/** What counts where a task role says nothing. */
const FALLBACKS = { taskNumber: 1, cpuNumber: 1, memoryMB: 100, gpuNumber: 0 };

/** Add up what a job asks for; what is no number yet counts as if it was not there. */
export function askedFor(config: unknown): IAsked {
  const asked = { tasks: 0, gpus: 0, cpus: 0, memoryMB: 0 };
  const roles = valueAt(config, ['taskRoles']);
  for (const role of Array.isArray(roles) ? roles.filter(isObject) : []) {
    const number = (name: keyof typeof FALLBACKS) => (typeof role[name] === 'number' ? role[name] : FALLBACKS[name]);
    const tasks = number('taskNumber');
    asked.tasks += tasks;
    asked.gpus += tasks * number('gpuNumber');
    asked.cpus += tasks * number('cpuNumber');
    asked.memoryMB += tasks * number('memoryMB');
  }
  return asked;
}

/** Something that is asked for, and what there is of it. */
export interface IAmount extends IShare {
  readonly kind: 'gpus' | 'cpus' | 'memoryMB';
  readonly asked: number;
}

/** Set what a job asks for against what is free where something new may start; GPUs of its type only. */
export function amounts(config: unknown, nodes: readonly INode[]): IAmount[] {
  const asked = askedFor(config);
  const type = valueAt(config, ['gpuType']);
  const gpus = gpuTypes(nodes).filter(one => !type || one.type === type);
  const total = gpus.reduce((all, one) => all + one.total, 0);
  const free = gpus.reduce((all, one) => all + one.free, 0);
  const open = nodes.filter(takesJobs);
  return [
    { kind: 'gpus', asked: asked.gpus, free, total },
    { kind: 'cpus', asked: asked.cpus, ...sum(open, node => [share(node, 'cpus')]) },
    { kind: 'memoryMB', asked: asked.memoryMB, ...sum(open, node => [share(node, 'memoryMB')]) }
  ];
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** Write a time to wait as people say it, rounded up. */
export function aboutSoLong(seconds: number, trans: ITranslation): string {
  if (seconds <= 2 * HOUR) {
    return trans._n('about %1 minute', 'about %1 minutes', Math.max(1, Math.ceil(seconds / MINUTE)));
  }
  return seconds <= 2 * DAY
    ? trans._n('about %1 hour', 'about %1 hours', Math.ceil(seconds / HOUR))
    : trans._n('about %1 day', 'about %1 days', Math.ceil(seconds / DAY));
}

/** Return what submitting would do: whether it starts now, later or never, when, and why. */
export function forecastText(answer: IValidation, trans: ITranslation): string {
  const sentences = [
    answer.fits === 'now'
      ? trans.__('This job starts now.')
      : answer.fits === 'later'
        ? trans.__('This job will wait.')
        : trans.__('This job cannot run here as it is.'),
    answer.reason
  ];
  if (answer.borrows && (answer.fits !== 'now' || !answer.reason)) {
    sentences.push(trans.__('It would borrow what is idle, and may be stopped for those it belongs to.'));
  }
  if (answer.fits === 'later' && answer.startsWithin !== null) {
    sentences.push(trans.__('It starts in %1.', aboutSoLong(answer.startsWithin, trans)));
  }
  if (answer.startsNowIn.length > 0) {
    sentences.push(trans.__('It would start now in virtual cluster %1.', answer.startsNowIn.join(', ')));
  }
  return sentences.filter(Boolean).join(' ');
}

interface IBarProps {
  model: JobEditorModel;
  /** Submit, or show what keeps it from being submitted. */
  submit: () => void;
  /** Choose a folder, and submit with its code; `null`: there are none. */
  submitWithCode: (() => void) | null;
  /** Whether code goes along with every job of this editor: it is submitted in that way alone. */
  onlyWithCode: boolean;
}

/** What is asked for, how it stands with the job, and the buttons that submit it. */
export function SubmitBar({ model, submit, submitWithCode, onlyWithCode }: IBarProps): React.ReactElement {
  const { trans } = useHost();
  const disabled = model.isSubmitting || model.submitted !== null || model.obstacle !== null;
  return (
    <section className="pai-SubmitBar" aria-label={trans.__('Submit')}>
      <Amounts model={model} />
      <div className="pai-SubmitBar-line">
        {!onlyWithCode && (
          <TextButton accept disabled={disabled} onClick={submit}>
            {trans.__('Submit job')}
          </TextButton>
        )}
        {submitWithCode && (
          <TextButton
            accept={onlyWithCode}
            title={onlyWithCode ? undefined : trans.__('Choose a folder of this notebook server whose code goes along')}
            disabled={disabled}
            onClick={submitWithCode}
          >
            {trans.__('Submit with code …')}
          </TextButton>
        )}
        <div className="pai-SubmitBar-state" role="status">
          <State model={model} />
        </div>
      </div>
    </section>
  );
}

/** How it stands with the job: what came of it, all that is known to be wrong with it, or when it would start. */
function State({ model }: { model: JobEditorModel }): React.ReactElement {
  const { trans, places } = useHost();
  const { answer, problems, submitted } = model;
  if (submitted !== null) {
    return (
      <>
        <span className="pai-mod-good">{trans.__('Submitted: %1', submitted)}</span>
        <TextButton
          small
          onClick={() => places.open({ page: 'job', job: { username: model.user ?? '', name: submitted } })}
        >
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
                <button
                  key={path.join()}
                  type="button"
                  className="pai-LinkButton"
                  onClick={() => model.wanted.emit(path)}
                >
                  {placeText(path, model, trans)}
                </button>
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

/** Name a field as its label does, and its task role. */
function placeText(path: Path, model: JobEditorModel, trans: ITranslation): string {
  const { title } = model.schema.words(path);
  const role = path[0] === 'taskRoles' && typeof path[1] === 'number' ? path[1] : null;
  if (role === null || path.length < 3) {
    return path.length === 0 ? trans.__('the job') : title;
  }
  const name = model.value(['taskRoles', role, 'name']);
  return trans.__('%1 of %2', title, typeof name === 'string' && name ? name : trans.__('Task role %1', role + 1));
}

/** What is asked for against what is free, in figures and as bars. */
function Amounts({ model }: { model: JobEditorModel }): React.ReactElement {
  const { trans } = useHost();
  const nodes = model.cluster.answer?.nodes ?? [];
  const { tasks } = askedFor(model.config);
  return (
    <dl className="pai-Amounts">
      <div>
        <dt>{trans.__('Asks for')}</dt>
        <dd>{trans._n('%1 task', '%1 tasks', tasks)}</dd>
      </div>
      {amounts(model.config, nodes).map(amount => (
        <Amount key={amount.kind} amount={amount} isKnown={nodes.length > 0} />
      ))}
    </dl>
  );
}

function Amount({ amount, isKnown }: { amount: IAmount; isKnown: boolean }): React.ReactElement {
  const { trans } = useHost();
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
