// The inputs of the form: each shows a field of the job, with the words that its schema has for it.

import * as React from 'react';

import { useHost } from '../host';
import { CheckField, Choice, ChoiceField, Field, IFieldProps, TextField } from '../kit/field';
import { JobEditorModel } from './model';
import { afterOf, afterText, keyOf, Path, shown } from './text';

/** What all inputs of a form share. `id`: begins the ids of its elements. */
export interface IForm {
  readonly model: JobEditorModel;
  readonly id: string;
  /** Whether a job can be submitted with the code of a folder. */
  readonly hasFolders: boolean;
}

export const FormContext = React.createContext<IForm | null>(null);

export function useForm(): IForm {
  return React.useContext(FormContext)!;
}

/** The id of the input of a field: what is to be put right is focused by it. */
export function inputId(id: string, path: Path): string {
  return `${id}-${path.join('-')}`;
}

interface IJobFieldProps extends Pick<IFieldProps, 'hint' | 'beside'> {
  path: Path;
  /** In place of the schema's. */
  help?: string | undefined;
  placeholder?: string;
}

/** Return what there is to say about a field; `whole`: what is wrong within it, as in an entry of a list, too. */
function useField({ path, help, ...others }: IJobFieldProps, whole = false): IFieldProps & { placeholder?: string } {
  const { model, id } = useForm();
  const words = model.schema.words(path);
  return {
    ...others,
    id: inputId(id, path),
    label: words.title,
    help: help ?? words.description,
    needed: model.needed.some(one => keyOf(one) === keyOf(path)),
    mistakes: whole ? model.mistakesWithin(path) : model.mistakesAt(path)
  };
}

interface IJobTextProps extends IJobFieldProps {
  lines?: number;
  required?: boolean;
  suggestions?: readonly string[];
}

/** A text. A blank one is "" where the job needs the field, else it is not there. */
export function JobText({ lines, required = false, suggestions, ...field }: IJobTextProps): React.ReactElement {
  const { model } = useForm();
  return (
    <TextField
      {...useField(field)}
      {...(lines ? { lines } : {})}
      {...(suggestions ? { suggestions } : {})}
      value={shown(model.value(field.path))}
      onChange={text => model.edit(field.path, text || (required ? '' : undefined))}
    />
  );
}

/** A whole number. What is none stays as it was typed, for the scheduler to name. */
export function JobNumber(field: IJobFieldProps): React.ReactElement {
  const { model } = useForm();
  const value = model.value(field.path);
  const [typed, setTyped] = React.useState('');
  return (
    <TextField
      {...useField(field)}
      numeric
      // "08" stays what it is while it is typed
      value={integer(typed) === value ? typed : shown(value)}
      placeholder={field.placeholder ?? model.schema.words(field.path).fallback}
      onChange={text => {
        setTyped(text);
        model.edit(field.path, integer(text));
      }}
    />
  );
}

/** The jobs that a job waits for, as in `pai submit --after`: names with commas between, each with `:on` if need be. */
export function JobAfter(field: IJobFieldProps): React.ReactElement {
  const { model } = useForm();
  const value = model.value(field.path);
  const [typed, setTyped] = React.useState('');
  return (
    <TextField
      {...useField(field, true)}
      // a comma stays while the next name is typed
      value={shown(afterOf(typed)) === shown(value) ? typed : afterText(value)}
      onChange={text => {
        setTyped(text);
        model.edit(field.path, afterOf(text));
      }}
    />
  );
}

/** One of some values; one that is not among them is kept, and said so. `blank`: the value where the job has none. */
export function JobChoice(props: IJobFieldProps & { choices: readonly Choice[]; blank: string }): React.ReactElement {
  const { choices, blank, ...field } = props;
  const { model } = useForm();
  const { trans } = useHost();
  const value = shown(model.value(field.path)) || blank;
  const isKnown = choices.some(([one]) => one === value);
  return (
    <ChoiceField
      {...useField(field)}
      value={value}
      choices={isKnown ? choices : [...choices, [value, trans.__('%1 (not there at present)', value)]]}
      onChange={chosen => model.edit(field.path, chosen || undefined)}
    />
  );
}

/** A number, null or absent, told apart: the choice says which, the number stands beside it. */
export function JobLimit(props: IJobFieldProps & { absent: string; never: string }): React.ReactElement {
  const { absent, never, ...field } = props;
  const { model } = useForm();
  const { trans } = useHost();
  const value = model.value(field.path);
  const kind = value === undefined ? 'absent' : value === null ? 'null' : 'number';
  const shared = useField(field);
  return (
    <Field {...shared}>
      {input => (
        <>
          <select
            {...input}
            value={kind}
            onChange={({ target }) => {
              const values: Record<string, unknown> = { absent: undefined, null: null, number: 1 };
              model.edit(field.path, values[target.value]);
            }}
          >
            <option value="absent">{absent}</option>
            <option value="null">{never}</option>
            <option value="number">{trans.__('this many:')}</option>
          </select>
          {kind === 'number' && (
            <input
              className="pai-Input pai-mod-short"
              aria-label={shared.label}
              inputMode="numeric"
              value={shown(value)}
              onChange={({ target }) => model.edit(field.path, integer(target.value) ?? '')}
            />
          )}
        </>
      )}
    </Field>
  );
}

/** Yes or no. What it is where the job does not say is not written down. */
export function JobCheck(props: { path: Path; label: string; whenAbsent?: boolean }): React.ReactElement {
  const { path, label, whenAbsent = false } = props;
  const { model, id } = useForm();
  const value = model.value(path);
  return (
    <CheckField
      id={inputId(id, path)}
      label={label}
      help={model.schema.words(path).description}
      mistakes={model.mistakesAt(path)}
      checked={value === undefined ? whenAbsent : value === true || value === 'true'}
      onChange={checked => model.edit(path, checked === whenAbsent ? undefined : checked)}
    />
  );
}

/** Read a whole number; `undefined` for a blank text, the text itself where it is no number. */
function integer(text: string): number | string | undefined {
  return /^\s*[-+]?\d{1,15}\s*$/.test(text) ? Number(text) : text.trim() === '' ? undefined : text;
}
