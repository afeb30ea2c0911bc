// A file that runs as a job: its image and resources, its parameters, where its results go, when it runs.

import * as React from 'react';

import { IRunPlan, IRunRequest, ISubmitted } from '../data/client';
import { IHost, useHost } from '../host';
import { ChoiceField, Field, TextField } from '../kit/field';
import { localText } from '../kit/time';
import { Files, PatternFields } from './code';
import { askAndSubmit, IAsked, Reason } from './dialog';
import { WhenFields } from './when';

/** The job that was submitted, or where it is to run again and again, its schedule. */
export interface IRunning extends ISubmitted {
  readonly scheduled: boolean;
}

/**
 * Ask how a file is to run, and submit it. Resolves with the job, or `null` when it was given up.
 *
 * @param path - of the file, below what the file browser shows
 */
export async function runAsJob(path: string, host: IHost): Promise<IRunning | null> {
  const { client, trans } = host;
  const done = await askAndSubmit<IRunRequest, IRunPlan>(
    host,
    { path },
    {
      title: trans.__('Run %1 as a job', path.split('/').pop()!),
      className: 'pai-Code pai-Run',
      accept: ({ schedule }) => (schedule === undefined ? trans.__('Run') : trans.__('Make the schedule')),
      fields: asked => <RunFields {...asked} />,
      plan: asked => client.planRun(asked),
      filled: typed => typed,
      submit: (asked, onProgress, signal) => client.runFile(asked, onProgress, signal)
    }
  );
  return done && { ...done.submitted, scheduled: done.request.schedule !== undefined };
}

function RunFields({ request, plan, problem, change }: IAsked<IRunRequest, IRunPlan>): React.ReactElement {
  return (
    <>
      {plan && <PlannedFields request={request} plan={plan} onChange={change} />}
      <Outlook plan={plan} problem={problem} scheduled={request.schedule !== undefined} />
    </>
  );
}

/** What is wrong, or when it would start. */
function Outlook(props: { plan: IRunPlan | null; problem: string; scheduled: boolean }): React.ReactElement {
  const { plan, problem, scheduled } = props;
  const { language, trans } = useHost();
  if (problem) {
    return <Reason text={problem} />;
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

interface IPlannedProps {
  request: IRunRequest;
  plan: IRunPlan;
  onChange: (request: IRunRequest) => void;
}

/** The fields of a run. What is not typed shows what the notebook server would take. */
function PlannedFields({ request, plan, onChange }: IPlannedProps): React.ReactElement {
  const { trans } = useHost();
  const set = (changes: Partial<IRunRequest>) => onChange({ ...request, ...changes });
  const gpus = request.gpus ?? 0;
  const types = Object.keys(plan.gpuTypes);
  return (
    <>
      <div className="pai-Run-fields">
        <TextField label={trans.__('Name')} value={request.name ?? plan.name} onChange={name => set({ name })} />
        <ChoiceField
          label={trans.__('Virtual cluster')}
          value={request.virtualCluster ?? plan.virtualCluster}
          choices={plan.virtualClusters.map(name => [name, name])}
          onChange={virtualCluster => set({ virtualCluster })}
        />
        {plan.imageNeeded && (
          <TextField
            label={trans.__('Image')}
            wide
            value={request.image ?? plan.image}
            suggestions={plan.images}
            onChange={image => set({ image })}
          />
        )}
        <NumberField
          label={trans.__('GPUs')}
          value={String(gpus)}
          read={typed => wholeNumber(typed, 0)}
          onChange={gpus => set({ gpus })}
        />
        <ChoiceField
          label={trans.__('GPU type')}
          value={request.gpuType ?? ''}
          disabled={gpus === 0}
          choices={[['', trans.__('any')], ...types.map((name): [string, string] => [name, name])]}
          onChange={gpuType => set({ gpuType })}
        />
        <NumberField
          label={trans.__('CPUs')}
          value={String(request.cpus ?? plan.cpus)}
          read={typed => wholeNumber(typed, 1)}
          onChange={cpus => set({ cpus })}
        />
        <NumberField
          label={trans.__('Memory (GB)')}
          value={gigabytes(request.memoryMB ?? plan.memoryMB)}
          read={megabytes}
          onChange={memoryMB => set({ memoryMB })}
        />
      </div>
      {plan.kind === 'notebook' ? (
        <Parameters request={request} plan={plan} onChange={onChange} />
      ) : (
        <TextField
          label={trans.__('Arguments')}
          value={request.arguments ?? ''}
          onChange={text => set({ arguments: text })}
        />
      )}
      <TextField
        label={
          plan.kind === 'notebook'
            ? trans.__('Folder of your storage for the executed notebook')
            : trans.__('Folder of your storage for results (PAI_OUTPUT_DIR)')
        }
        value={request.results ?? plan.results}
        onChange={results => set({ results })}
      />
      <WhenFields
        schedule={request.schedule}
        // one that runs now has none
        onChange={schedule => onChange({ ...request, schedule })}
      />
      <details>
        <summary>{trans.__('Files that go along: %1', plan.files.length)}</summary>
        <PatternFields
          include={request.include ?? plan.include}
          exclude={request.exclude ?? plan.exclude}
          onChange={set}
        />
        <Files files={plan.files} />
      </details>
    </>
  );
}

function Parameters({ request, plan, onChange }: IPlannedProps): React.ReactElement {
  const { trans } = useHost();
  const rows = parameterRows(request, plan);
  return (
    <fieldset className="pai-Run-parameters">
      <legend>{trans.__('Parameters')}</legend>
      {rows.length === 0 && (
        <p className="pai-mod-secondary">
          {trans.__(
            'None. Tag a cell “parameters” (Property Inspector, Common Tools), and what it assigns can be set here.'
          )}
        </p>
      )}
      {rows.map(([name, value]) => (
        <label key={name}>
          <code>{name}</code>
          <input
            className="pai-Input"
            spellCheck={false}
            value={value}
            onChange={event => onChange(withParameter(request, plan, name, event.target.value))}
          />
        </label>
      ))}
    </fieldset>
  );
}

/** Keeps what is typed, and tells it once it is a number. */
function NumberField(props: {
  label: string;
  value: string;
  read: (typed: string) => number | null;
  onChange: (value: number) => void;
}): React.ReactElement {
  const { label, value, read, onChange } = props;
  const [typed, setTyped] = React.useState<string | null>(null);
  const shown = typed ?? value;
  return (
    <Field label={label}>
      {input => (
        <input
          {...input}
          type="number"
          min={0}
          step="any"
          value={shown}
          aria-invalid={read(shown) === null}
          onChange={({ target }) => {
            setTyped(target.value);
            const number = read(target.value);
            if (number !== null) {
              onChange(number);
            }
          }}
          onBlur={() => setTyped(null)}
        />
      )}
    </Field>
  );
}

/** Return the value of each parameter, as it was typed or stands in the notebook. */
export function parameterRows(request: IRunRequest, plan: IRunPlan): [name: string, value: string][] {
  return Object.entries(plan.parameters).map(([name, value]) => [name, request.parameters?.[name] ?? value]);
}

/** Set a parameter; one that is as the notebook has it is not sent. */
export function withParameter(request: IRunRequest, plan: IRunPlan, name: string, value: string): IRunRequest {
  const typed = Object.entries({ ...request.parameters, [name]: value });
  return {
    ...request,
    parameters: Object.fromEntries(typed.filter(([name, value]) => plan.parameters[name] !== value))
  };
}

/** Read a whole number of at least `least`; `null` where there is none, which stays as it was. */
export function wholeNumber(typed: string, least: number): number | null {
  const number = Number(typed);
  return typed.trim() !== '' && Number.isInteger(number) && number >= least ? number : null;
}

/** Read gigabytes as MB. */
export function megabytes(typed: string): number | null {
  const number = Math.round(Number(typed) * 1024);
  return Number.isFinite(number) && number >= 100 ? number : null;
}

/** Write MB as gigabytes. */
export function gigabytes(megabytes: number): string {
  return String(Math.round((megabytes / 1024) * 100) / 100);
}
