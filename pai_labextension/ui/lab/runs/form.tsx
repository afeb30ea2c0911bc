// The fields of a run. What is not typed shows what the notebook server would take.

import * as React from 'react';

import { IRunPlan, IRunRequest } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { Files, PatternsInput } from '../submit/files';
import { Choice, TextField } from './inputs';
import { gigabytes, megabytes, parameterRows, wholeNumber, withParameter } from './model';
import { WhenForm } from './whenForm';

interface IProps {
  request: IRunRequest;
  plan: IRunPlan;
  language: string;
  trans: ITranslation;
  onChange: (request: IRunRequest) => void;
}

export function RunForm({ request, plan, language, trans, onChange }: IProps): React.ReactElement {
  const set = (changes: Partial<IRunRequest>) => onChange({ ...request, ...changes });
  const gpus = request.gpus ?? 0;
  const types = Object.keys(plan.gpuTypes);
  return (
    <>
      <div className="pai-Run-fields">
        <TextField label={trans.__('Name')} value={request.name ?? plan.name} onChange={name => set({ name })} />
        <Choice
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
        <Choice
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
        <Parameters request={request} plan={plan} trans={trans} onChange={onChange} />
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
      <WhenForm
        schedule={request.schedule}
        language={language}
        trans={trans}
        // one that runs now has none
        onChange={schedule => onChange({ ...request, schedule })}
      />
      <details>
        <summary>{trans.__('Files that go along: %1', plan.files.length)}</summary>
        <PatternsInput
          label={trans.__('Files that go along (one pattern in a line)')}
          value={request.include ?? plan.include}
          onChange={include => set({ include })}
        />
        <PatternsInput
          label={trans.__('Except')}
          value={request.exclude ?? plan.exclude}
          onChange={exclude => set({ exclude })}
        />
        <Files files={plan.files} trans={trans} />
      </details>
    </>
  );
}

function Parameters({ request, plan, trans, onChange }: Omit<IProps, 'language'>): React.ReactElement {
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
  const [typed, setTyped] = React.useState<string | null>(null);
  const shown = typed ?? props.value;
  return (
    <label>
      {props.label}
      <input
        className="pai-Input"
        type="number"
        min={0}
        step="any"
        value={shown}
        aria-invalid={props.read(shown) === null}
        onChange={event => {
          setTyped(event.target.value);
          const number = props.read(event.target.value);
          if (number !== null) {
            props.onChange(number);
          }
        }}
        onBlur={() => setTyped(null)}
      />
    </label>
  );
}
