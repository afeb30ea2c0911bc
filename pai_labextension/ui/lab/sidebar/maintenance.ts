// The maintenance that is planned or under way, each once, with its machines.

import { INode } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { localText } from '../../console/kit/time';

/** So many machines are named; of more it is said how many. */
const NAMED = 5;

type Window = NonNullable<INode['maintenance']>[number];

/** Maintenance, and the machines that it is of. */
export interface IMaintenance extends Pick<Window, 'name' | 'begin' | 'end' | 'reason'> {
  readonly machines: readonly string[];
  /** It is why some of them take nothing new now. */
  readonly begun: boolean;
}

/** Return what is planned for any machine or under way, what begins first before the others. */
export function maintenanceOf(nodes: readonly Pick<INode, 'name' | 'closed' | 'maintenance'>[]): IMaintenance[] {
  const found = new Map<string, Window & { machines: string[]; begun: boolean }>();
  for (const node of nodes) {
    for (const window of node.maintenance ?? []) {
      const known = found.get(window.name) ?? { ...window, machines: [], begun: false };
      known.machines.push(node.name);
      // (only maintenance closes until a time)
      known.begun ||= node.closed?.until === window.end;
      found.set(window.name, known);
    }
  }
  return [...found.values()].sort((one, other) => one.begin - other.begin || one.end - other.end);
}

/** Return maintenance as a sentence. */
export function maintenanceText(one: IMaintenance, trans: ITranslation, language: string): string {
  const [begin, end] = [one.begin, one.end].map(time => localText(new Date(time), language, 'minutes'));
  const names = one.machines.slice(0, NAMED).join(', ');
  const more = one.machines.length - NAMED;
  const machines = more > 0 ? trans.__('%1 and %2 more', names, more) : names;
  return one.begun
    ? trans.__('In maintenance until %1: %2 (%3)', end, machines, one.reason)
    : trans.__('Maintenance from %1 to %2: %3 (%4)', begin, end, machines, one.reason);
}
