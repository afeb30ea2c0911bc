// What maintenance is planned or under way: a line for each.

import * as React from 'react';

import { INode } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { maintenanceOf, maintenanceText } from './maintenance';

interface IPlannedMaintenanceProps {
  nodes: readonly INode[];
  trans: ITranslation;
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
