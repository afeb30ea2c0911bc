// The inputs of the form: each has its label, its help, and what is wrong with it right beneath.

import * as React from 'react';

import { ITranslation } from '../../console/host';
import { afterOf, afterText, shown } from './after';
import { JobEditorModel } from './model';
import { keyOf, Path } from './text';

/** What all inputs of a form share. `id`: begins the ids of its elements. */
export interface IFormContext {
  readonly model: JobEditorModel;
  readonly trans: ITranslation;
  readonly id: string;
}

export const FormContext = React.createContext<IFormContext | null>(null);

export function useForm(): IFormContext {
  return React.useContext(FormContext)!;
}

/** The id of the input of a field: what is to be put right is focused by it. */
export function inputId(id: string, path: Path): string {
  return `${id}-${path.join('-')}`;
}

interface IFieldProps {
  path: Path;
  /** In place of the schema's. */
  label?: string;
  help?: string;
  placeholder?: string;
  /** What else is in the line. */
  beside?: React.ReactNode;
  /** Whether what is wrong within it, as in an entry of a list, is told here, too. */
  whole?: boolean;
}

/** What an input needs to know of its field. */
interface IInput {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean;
  'aria-required': boolean;
  title: string;
}

/** A label, an input, its help and its mistakes. `hint`: the help is always in sight, not only where the pointer rests. */
export function Field({
  path,
  label,
  help,
  beside,
  whole = false,
  hint = false,
  children
}: IFieldProps & { hint?: boolean; children: (input: IInput) => React.ReactNode }): React.ReactElement {
  const { model, id } = useForm();
  const words = model.schema.words(path);
  const mistakes = whole ? model.mistakesWithin(path) : model.mistakesAt(path);
  const needed = model.needed.some(one => keyOf(one) === keyOf(path));
  const description = help ?? words.description;
  const own = inputId(id, path);
  const described = [hint && `${own}-help`, mistakes.length > 0 && `${own}-mistakes`].filter(Boolean).join(' ');
  return (
    <div className="pai-Field">
      <label htmlFor={own} title={description}>
        {label ?? words.title}
        {needed && <span aria-hidden="true"> *</span>}
      </label>
      <div className="pai-Field-line">
        {children({
          id: own,
          'aria-describedby': described || undefined,
          'aria-invalid': mistakes.length > 0,
          'aria-required': needed,
          title: description
        })}
        {beside}
      </div>
      {hint && (
        <p className="pai-Field-help" id={`${own}-help`}>
          {description}
        </p>
      )}
      {mistakes.length > 0 && (
        <p className="pai-Field-mistake" id={`${own}-mistakes`} role="alert">
          {mistakes.join(' ')}
        </p>
      )}
    </div>
  );
}

/** A line of text, or several. A blank one is "" where the job needs the field, else it is not there. */
export function TextField({
  lines = 1,
  required = false,
  hint,
  suggestions,
  ...props
}: IFieldProps & {
  lines?: number;
  required?: boolean;
  hint?: boolean;
  suggestions?: readonly string[];
}): React.ReactElement {
  const { model, id } = useForm();
  const list = suggestions && suggestions.length > 0 ? `${inputId(id, props.path)}-list` : undefined;
  const onChange = (event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) =>
    model.edit(props.path, event.target.value || (required ? '' : undefined));
  const value = shown(model.value(props.path));
  return (
    <Field {...props} hint={hint ?? false}>
      {input =>
        lines === 1 ? (
          <>
            <input
              {...input}
              className="pai-Input"
              value={value}
              list={list}
              placeholder={props.placeholder}
              spellCheck={false}
              onChange={onChange}
            />
            {list && (
              <datalist id={list}>
                {suggestions!.map(one => (
                  <option key={one} value={one} />
                ))}
              </datalist>
            )}
          </>
        ) : (
          <textarea
            {...input}
            className="pai-Input"
            rows={Math.min(Math.max(lines, value.split('\n').length), 20)}
            value={value}
            placeholder={props.placeholder}
            spellCheck={false}
            onChange={onChange}
          />
        )
      }
    </Field>
  );
}

/** A whole number. What is none stays as it was typed, for the scheduler to name. */
export function NumberField(props: IFieldProps): React.ReactElement {
  const { model } = useForm();
  const value = model.value(props.path);
  const [typed, setTyped] = React.useState('');
  return (
    <Field {...props}>
      {input => (
        <input
          {...input}
          className="pai-Input"
          inputMode="numeric"
          // "08" stays what it is while it is typed
          value={integer(typed) === value ? typed : shown(value)}
          placeholder={props.placeholder ?? model.schema.words(props.path).fallback}
          onChange={({ target }) => {
            setTyped(target.value);
            model.edit(props.path, integer(target.value));
          }}
        />
      )}
    </Field>
  );
}

/** The jobs that a job waits for, as in `pai submit --after`: names with commas between, each with `:on` if need be. */
export function AfterField(props: IFieldProps): React.ReactElement {
  const { model } = useForm();
  const value = model.value(props.path);
  const [typed, setTyped] = React.useState('');
  return (
    <Field {...props} whole>
      {input => (
        <input
          {...input}
          className="pai-Input"
          // a comma stays while the next name is typed
          value={shown(afterOf(typed)) === shown(value) ? typed : afterText(value)}
          placeholder={props.placeholder}
          spellCheck={false}
          onChange={({ target }) => {
            setTyped(target.value);
            model.edit(props.path, afterOf(target.value));
          }}
        />
      )}
    </Field>
  );
}

/** One of some values; one that is not among them is kept, and said so. `blank`: the value where the job has none. */
export function ChoiceField({
  choices,
  blank,
  ...props
}: IFieldProps & { choices: readonly (readonly [value: string, label: string])[]; blank: string }): React.ReactElement {
  const { model, trans } = useForm();
  const value = shown(model.value(props.path)) || blank;
  const isKnown = choices.some(([one]) => one === value);
  return (
    <Field {...props}>
      {input => (
        <select
          {...input}
          className="pai-Input"
          value={value}
          onChange={({ target }) => model.edit(props.path, target.value || undefined)}
        >
          {choices.map(([one, label]) => (
            <option key={one} value={one}>
              {label}
            </option>
          ))}
          {!isKnown && <option value={value}>{trans.__('%1 (not there at present)', value)}</option>}
        </select>
      )}
    </Field>
  );
}

/** A number, null or absent, told apart: the choice says which, the number stands beside it. */
export function LimitField({
  absent,
  never,
  ...props
}: IFieldProps & { absent: string; never: string }): React.ReactElement {
  const { model, trans } = useForm();
  const value = model.value(props.path);
  const kind = value === undefined ? 'absent' : value === null ? 'null' : 'number';
  const label = model.schema.words(props.path).title;
  return (
    <Field {...props}>
      {input => (
        <>
          <select
            {...input}
            className="pai-Input"
            value={kind}
            onChange={({ target }) => {
              const values: Record<string, unknown> = { absent: undefined, null: null, number: 1 };
              model.edit(props.path, values[target.value]);
            }}
          >
            <option value="absent">{absent}</option>
            <option value="null">{never}</option>
            <option value="number">{trans.__('this many:')}</option>
          </select>
          {kind === 'number' && (
            <input
              className="pai-Input pai-mod-short"
              aria-label={label}
              inputMode="numeric"
              value={shown(value)}
              onChange={({ target }) => model.edit(props.path, integer(target.value) ?? '')}
            />
          )}
        </>
      )}
    </Field>
  );
}

/** Yes or no. What it is where the job does not say is not written down. */
export function CheckField({
  path,
  label,
  whenAbsent = false
}: {
  path: Path;
  label: string;
  whenAbsent?: boolean;
}): React.ReactElement {
  const { model, id } = useForm();
  const value = model.value(path);
  const mistakes = model.mistakesAt(path);
  return (
    <div className="pai-Field pai-mod-check">
      <label htmlFor={inputId(id, path)} title={model.schema.words(path).description}>
        <input
          id={inputId(id, path)}
          type="checkbox"
          checked={value === undefined ? whenAbsent : value === true || value === 'true'}
          onChange={({ target }) => model.edit(path, target.checked === whenAbsent ? undefined : target.checked)}
        />
        {label}
      </label>
      {mistakes.length > 0 && (
        <p className="pai-Field-mistake" role="alert">
          {mistakes.join(' ')}
        </p>
      )}
    </div>
  );
}

/** Read a whole number; `undefined` for a blank text, the text itself where it is no number. */
export function integer(text: string): number | string | undefined {
  return /^\s*[-+]?\d{1,15}\s*$/.test(text) ? Number(text) : text.trim() === '' ? undefined : text;
}
