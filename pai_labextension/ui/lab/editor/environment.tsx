// The rows of a job's environment variables.

import * as React from 'react';

import { IconButton, TextButton } from '../../console/kit/button';
import { shown } from './after';
import { CheckField, useForm } from './fields';
import { isObject } from './text';

/** Has a switch of its own. */
const DEBUG = 'isDebug';
const PATH = ['jobEnvs'] as const;

/** Shows all variables, to be changed, added and removed. */
export function Environment(): React.ReactElement {
  const { model, trans, id } = useForm();
  // a variable that has no name yet is no part of the job
  const [fresh, setFresh] = React.useState<readonly number[]>([]);
  const [next, setNext] = React.useState(0);
  const value = model.value(PATH);
  const variables = isObject(value) ? value : {};
  const isSwitch = (name: string) => name === DEBUG && typeof variables[name] === 'boolean';
  const names = Object.keys(variables).filter(name => !isSwitch(name));
  const mistakes = model.mistakes.filter(({ path }) => path[0] === 'jobEnvs').map(({ message }) => message);
  const rename = (old: string, name: string) =>
    model.edit(
      PATH,
      Object.fromEntries(Object.entries(variables).map(([key, one]) => [key === old ? name : key, one]))
    );
  return (
    <fieldset className="pai-Environment">
      <legend title={model.schema.words(PATH).description}>{model.schema.words(PATH).title}</legend>
      {names.map(name => (
        <Variable
          key={`=${name}`}
          name={name}
          value={shown(variables[name])}
          taken={Object.keys(variables).filter(other => other !== name)}
          onName={changed => rename(name, changed)}
          onValue={text => model.edit([...PATH, name], typed(text, variables[name]))}
          onRemove={() => model.edit([...PATH, name], undefined)}
        />
      ))}
      {fresh.map(number => (
        <Variable
          key={number}
          name=""
          value=""
          taken={Object.keys(variables)}
          onName={name => {
            model.edit([...PATH, name], '');
            setFresh(fresh.filter(other => other !== number));
          }}
          onValue={null}
          onRemove={() => setFresh(fresh.filter(other => other !== number))}
        />
      ))}
      {mistakes.length > 0 && (
        <p className="pai-Field-mistake" role="alert" id={`${id}-jobEnvs`} tabIndex={-1}>
          {mistakes.join(' ')}
        </p>
      )}
      <TextButton
        small
        icon="add"
        onClick={() => {
          setFresh([...fresh, next]);
          setNext(next + 1);
        }}
      >
        {trans.__('Add a variable')}
      </TextButton>
      <CheckField path={[...PATH, DEBUG]} label={trans.__('Debug: a task that fails keeps its container')} />
    </fieldset>
  );
}

interface IVariableProps {
  name: string;
  value: string;
  taken: readonly string[];
  onName: (name: string) => void;
  /** `null`: it needs a name first. */
  onValue: ((value: string) => void) | null;
  onRemove: () => void;
}

/** One variable. Its name counts when the input is left: each letter of it would be another variable. */
function Variable({ name, value, taken, onName, onValue, onRemove }: IVariableProps): React.ReactElement {
  const { trans } = useForm();
  const [typing, setTyping] = React.useState<string | null>(null);
  const isTaken = typing !== null && taken.includes(typing);
  const commit = () => {
    if (typing && typing !== name && !isTaken) {
      onName(typing);
    }
    if (!isTaken) {
      setTyping(null);
    }
  };
  return (
    <div className="pai-Environment-row">
      <input
        className="pai-Input"
        aria-label={trans.__('Name of the variable')}
        aria-invalid={isTaken}
        placeholder={trans.__('Name')}
        value={typing ?? name}
        spellCheck={false}
        onChange={({ target }) => setTyping(target.value)}
        onBlur={commit}
        onKeyDown={({ key }) => key === 'Enter' && commit()}
      />
      <input
        className="pai-Input"
        aria-label={trans.__('Value of the variable')}
        placeholder={onValue ? trans.__('Value') : trans.__('Give it a name first')}
        disabled={!onValue}
        value={value}
        spellCheck={false}
        onChange={({ target }) => onValue?.(target.value)}
      />
      <IconButton icon="delete" label={trans.__('Remove this variable')} onClick={onRemove} />
      {isTaken && (
        <p className="pai-Field-mistake" role="alert">
          {trans.__('There is a variable %1 already.', typing)}
        </p>
      )}
    </div>
  );
}

/** Keep the type that a value had, where the text still says one of it. */
function typed(text: string, before: unknown): unknown {
  const isNumber = typeof before === 'number' && text.trim() !== '' && String(Number(text)) === text;
  return isNumber ? Number(text) : text;
}
