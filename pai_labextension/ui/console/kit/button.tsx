// Buttons: with words, or a small one with a sign alone.

import * as React from 'react';

import { Icon, Sign } from './icon';

type Attributes = React.ButtonHTMLAttributes<HTMLButtonElement>;

interface ITextButtonProps extends Attributes {
  /** Shown before the words. */
  icon?: Sign;
  /** Whether this is what most people want. */
  accept?: boolean;
  small?: boolean;
}

export function TextButton({ icon, accept, small, children, ...others }: ITextButtonProps): React.ReactElement {
  const kinds = ['pai-Button', accept && 'pai-mod-accept', small && 'pai-mod-small'].filter(Boolean);
  return (
    <button type="button" className={kinds.join(' ')} {...others}>
      {icon && <Icon sign={icon} />}
      {children}
    </button>
  );
}

interface IIconButtonProps extends Attributes {
  icon: Sign;
  /** What it does, for those who do not see the sign; shown as a tooltip, too, unless `title` is. */
  label: string;
}

export function IconButton({ icon, label, ...others }: IIconButtonProps): React.ReactElement {
  return (
    <button type="button" className="pai-IconButton" aria-label={label} title={label} {...others}>
      <Icon sign={icon} />
    </button>
  );
}
