// Inputs: each has its label, its help, and what is wrong with it right beneath.

import * as React from 'react';

export interface IFieldProps {
  label: string;
  /** Of the input; one of its own where none is given. */
  id?: string;
  /** Shown where the pointer rests. */
  help?: string;
  /** Whether the help is always in sight. */
  hint?: boolean;
  /** Whether it must be filled in, and is not. */
  needed?: boolean;
  mistakes?: readonly string[];
  /** What else is in the line. */
  beside?: React.ReactNode;
  /** Whether it takes all columns of a grid. */
  wide?: boolean;
}

/** What an input needs to know of its field. */
interface IInput {
  id: string;
  className: string;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean;
  'aria-required': boolean;
  title: string | undefined;
}

/** A label, an input, its help and its mistakes. */
export function Field(props: IFieldProps & { children: (input: IInput) => React.ReactNode }): React.ReactElement {
  const { label, help, hint = false, needed = false, mistakes = [], beside, wide = false, children } = props;
  const own = React.useId();
  const id = props.id ?? own;
  const described = [hint && `${id}-help`, mistakes.length > 0 && `${id}-mistakes`].filter(Boolean).join(' ');
  return (
    <div className={wide ? 'pai-Field pai-mod-wide' : 'pai-Field'}>
      <label htmlFor={id} title={help}>
        {label}
        {needed && <span aria-hidden="true"> *</span>}
      </label>
      <div className="pai-Field-line">
        {children({
          id,
          className: 'pai-Input',
          'aria-describedby': described || undefined,
          'aria-invalid': mistakes.length > 0,
          'aria-required': needed,
          title: help
        })}
        {beside}
      </div>
      {hint && (
        <p className="pai-Field-help" id={`${id}-help`}>
          {help}
        </p>
      )}
      <Mistakes id={`${id}-mistakes`} mistakes={mistakes} />
    </div>
  );
}

/** What is wrong with a field; nothing where nothing is. */
export function Mistakes({ id, mistakes }: { id?: string; mistakes: readonly string[] }): React.ReactElement | null {
  return mistakes.length > 0 ? (
    <p className="pai-Field-mistake" role="alert" id={id} tabIndex={-1}>
      {mistakes.join(' ')}
    </p>
  ) : null;
}

interface ITextFieldProps extends IFieldProps {
  value: string;
  /** At least so many. */
  lines?: number;
  placeholder?: string | undefined;
  suggestions?: readonly string[];
  numeric?: boolean;
  onChange: (text: string) => void;
}

/** A line of text, or several. */
export function TextField(props: ITextFieldProps): React.ReactElement {
  const { value, lines = 1, placeholder, suggestions = [], numeric = false, onChange, ...field } = props;
  const list = React.useId();
  return (
    <Field {...field}>
      {input => {
        const shared = { ...input, value, placeholder, spellCheck: false };
        return lines === 1 ? (
          <>
            <input
              {...shared}
              list={suggestions.length > 0 ? list : undefined}
              inputMode={numeric ? 'numeric' : undefined}
              onChange={({ target }) => onChange(target.value)}
            />
            {suggestions.length > 0 && (
              <datalist id={list}>
                {suggestions.map(one => (
                  <option key={one} value={one} />
                ))}
              </datalist>
            )}
          </>
        ) : (
          <textarea
            {...shared}
            rows={Math.min(Math.max(lines, value.split('\n').length), 20)}
            onChange={({ target }) => onChange(target.value)}
          />
        );
      }}
    </Field>
  );
}

/** A value, and what it is called. */
export type Choice = readonly [value: string, label: string];

interface IChoiceFieldProps extends IFieldProps {
  value: string;
  choices: readonly Choice[];
  disabled?: boolean;
  onChange: (value: string) => void;
}

/** One of some values. */
export function ChoiceField({ value, choices, disabled, onChange, ...field }: IChoiceFieldProps): React.ReactElement {
  return (
    <Field {...field}>
      {input => (
        <select {...input} value={value} disabled={disabled} onChange={({ target }) => onChange(target.value)}>
          {choices.map(([one, label]) => (
            <option key={one} value={one}>
              {label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface ICheckFieldProps {
  label: string;
  id?: string;
  help?: string;
  mistakes?: readonly string[];
  checked: boolean;
  onChange: (checked: boolean) => void;
}

/** Yes or no. */
export function CheckField({
  label,
  id,
  help,
  mistakes = [],
  checked,
  onChange
}: ICheckFieldProps): React.ReactElement {
  return (
    <div className="pai-Field pai-mod-check">
      <label title={help}>
        <input id={id} type="checkbox" checked={checked} onChange={({ target }) => onChange(target.checked)} />
        {label}
      </label>
      <Mistakes mistakes={mistakes} />
    </div>
  );
}

/** What is folded away until somebody wants it, or something in it is wrong. */
export function Details(props: { summary: string; isOpen?: boolean; children: React.ReactNode }): React.ReactElement {
  const { summary, isOpen = false, children } = props;
  const [wanted, setWanted] = React.useState(false);
  return (
    <details open={wanted || isOpen} onToggle={({ currentTarget }) => setWanted(currentTarget.open)}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
