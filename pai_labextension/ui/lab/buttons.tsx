// JupyterLab's buttons as this extension uses them: with words, or a small one with an icon alone.

import { Button, IButtonProps, LabIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

interface ITextButtonProps extends IButtonProps {
  /** Shown before the words. */
  icon?: LabIcon;
  /** Whether this is what most people want. */
  accept?: boolean;
}

export function TextButton({ icon, accept, children, ...others }: ITextButtonProps): React.ReactElement {
  return (
    <Button className={`pai-Button jp-mod-styled${accept ? ' jp-mod-accept' : ''}`} {...others}>
      {icon && <icon.react tag="span" />}
      {children}
    </Button>
  );
}

interface IIconButtonProps extends IButtonProps {
  icon: LabIcon;
  /** What it does, for those who do not see the icon; shown as a tooltip, too, unless `title` is. */
  label: string;
}

export function IconButton({ icon, label, ...others }: IIconButtonProps): React.ReactElement {
  return (
    <Button minimal small className="pai-Button" aria-label={label} title={label} {...others}>
      <icon.react tag="span" />
    </Button>
  );
}
