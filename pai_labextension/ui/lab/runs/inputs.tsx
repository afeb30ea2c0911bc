// Inputs with their label above them.

import * as React from 'react';

export function TextField(props: {
  label: string;
  value: string;
  suggestions?: readonly string[];
  wide?: boolean;
  onChange: (value: string) => void;
}): React.ReactElement {
  const list = React.useId();
  return (
    <label className={props.wide ? 'pai-mod-wide' : undefined}>
      {props.label}
      <input
        className="pai-Input"
        spellCheck={false}
        value={props.value}
        list={props.suggestions ? list : undefined}
        onChange={event => props.onChange(event.target.value)}
      />
      {props.suggestions && (
        <datalist id={list}>
          {props.suggestions.map(name => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </label>
  );
}

export function Choice(props: {
  label: string;
  value: string;
  choices: readonly (readonly [value: string, label: string])[];
  disabled?: boolean;
  onChange: (value: string) => void;
}): React.ReactElement {
  return (
    <label>
      {props.label}
      <select
        className="pai-Input"
        value={props.value}
        disabled={props.disabled}
        onChange={event => props.onChange(event.target.value)}
      >
        {props.choices.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}
