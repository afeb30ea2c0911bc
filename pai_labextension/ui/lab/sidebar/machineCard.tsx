// A machine: how it is, what of it is taken, and whose jobs have its GPUs.

import * as React from 'react';

import { INode } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { machineLabel, shownState } from '../../console/data/words';
import { Bar } from './bar';
import { diskOf, gpusOf, holdersOn, IGpus, IHolder, IShare, share } from './machines';

interface IMachineCardProps {
  node: INode;
  trans: ITranslation;
  language: string;
}

export function MachineCard({ node, trans, language }: IMachineCardProps): React.ReactElement {
  const holders = holdersOn(node);
  const disk = diskOf(node);
  const storage = share(node, 'storageGB');
  return (
    <li className="pai-Machine" data-state={shownState(node)}>
      <h4>{node.name}</h4>
      {node.rack && <span className="pai-mod-secondary">{trans.__('rack %1', node.rack)}</span>}
      <span className="pai-State" data-state={shownState(node)}>
        {machineLabel(node, trans, language)}
      </span>
      {gpusOf(node).map(gpus => (
        <Gpus key={gpus.type} gpus={gpus} trans={trans} />
      ))}
      <FreeBar label={trans.__('CPUs')} of={share(node, 'cpus')} trans={trans} />
      <FreeBar label={trans.__('Memory (GB)')} of={inGb(share(node, 'memoryMB'))} trans={trans} />
      {disk && <FreeBar label={trans.__('Disk (GB)')} of={inGb(disk)} trans={trans} />}
      <span className="pai-mod-secondary">
        {trans.__('Disk that jobs may still reserve: %1 of %2 GB', storage.free, storage.total)}
      </span>
      {holders.length > 0 && <span>{trans.__('GPUs held by: %1', holders.join(', '))}</span>}
    </li>
  );
}

/** Shows one square for each GPU beneath how many are free. */
function Gpus({ gpus, trans }: { gpus: IGpus; trans: ITranslation }): React.ReactElement {
  return (
    <div className="pai-Bar">
      <span className="pai-Bar-label">{gpus.simulated ? trans.__('%1 (simulated)', gpus.type) : gpus.type}</span>
      <span className="pai-Bar-text">{trans.__('%1 of %2 free', gpus.free, gpus.total)}</span>
      <span className="pai-Machine-squares" aria-hidden="true">
        {gpus.holders.map((holder, number) => (
          <span key={number} className="pai-Machine-square" data-held={holder.held} title={title(holder, trans)} />
        ))}
      </span>
    </div>
  );
}

function title({ held, name }: IHolder, trans: ITranslation): string {
  return name ?? (held === 'no' ? trans.__('free') : trans.__('another user’s job'));
}

function FreeBar(props: { label: string; of: IShare; trans: ITranslation }): React.ReactElement {
  const { free, total } = props.of;
  return (
    <Bar
      label={props.label}
      text={props.trans.__('%1 of %2 free', free, total)}
      used={Math.max(0, total - free)}
      total={total}
    />
  );
}

function inGb({ free, total }: IShare): IShare {
  return { free: Math.floor(free / 1024), total: Math.floor(total / 1024) };
}
