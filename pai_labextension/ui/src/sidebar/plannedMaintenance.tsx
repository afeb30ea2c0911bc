// What maintenance is planned or under way: a line for each.

import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { INode } from '../api';
import { maintenanceOf, maintenanceText } from './maintenance';

interface IPlannedMaintenanceProps {
  nodes: readonly INode[];
  trans: TranslationBundle;
  language: string;
}

/** Shows nothing where nothing is planned. */
export function PlannedMaintenance(props: IPlannedMaintenanceProps): React.ReactElement | null {
  const { nodes, trans, language } = props;
  const planned = maintenanceOf(nodes);
  return planned.length === 0 ? null : (
    <ul className="pai-Maintenance" aria-label={trans.__('Maintenance')}>
      {planned.map(one => (
        <li key={one.name}>{maintenanceText(one, trans, language)}</li>
      ))}
    </ul>
  );
}
