// The page of the cluster: what of its GPUs is taken, now and over the day, its virtual clusters, its machines.

import * as React from 'react';

import { INode } from '../data/client';
import {
  ClusterModel,
  diskOf,
  gpusOf,
  gpuTypes,
  holdersOn,
  IGpus,
  IHolder,
  IShare,
  IVirtualCluster,
  maintenanceOf,
  maintenanceText,
  select,
  share,
  sum,
  takesJobs,
  untilNow
} from '../data/cluster';
import { machineLabel, machineShape, shownState } from '../data/words';
import { useModel } from '../data/store';
import { ITranslation, useHost } from '../host';
import { Bar, PageError, State } from '../kit/status';
import { UsageChart } from './usage';

/** Beyond so many machines there is a field to look for some, and so many are shown at first. */
const MANY = 10;
const SHOWN = 100;

export function ClusterPage({ cluster }: { cluster: ClusterModel }): React.ReactElement {
  const { trans } = useHost();
  useModel(cluster);
  const { machines, virtualClusters, usage } = cluster;
  const nodes = machines.answer;
  if (nodes === null || nodes.length === 0) {
    const none = nodes === null ? trans.__('Asking for the machines …') : trans.__('No machine has joined yet.');
    return machines.error ? <PageError text={machines.error} /> : <p role="status">{none}</p>;
  }
  const types = gpuTypes(nodes);
  return (
    <div className="pai-Scrolled" tabIndex={0} role="region" aria-label={trans.__('Cluster')}>
      <PageError text={machines.error || virtualClusters.error} />
      <p>{summary(nodes, trans)}</p>
      <PlannedMaintenance nodes={nodes} />
      {types.map(({ type, used, total }) => (
        <Bar key={type} label={type} text={trans.__('%1 of %2 used', used, total)} used={used} total={total} />
      ))}
      {usage.answer && <UsageChart usage={untilNow(usage.answer, types, machines.answeredAt)} />}
      {virtualClusters.answer && (
        <section>
          <h3>{trans.__('Virtual clusters')}</h3>
          {virtualClusters.answer.map(each => (
            <VirtualClusterBar key={each.name} cluster={each} />
          ))}
        </section>
      )}
      <MachineList nodes={nodes} />
    </div>
  );
}

function summary(nodes: readonly INode[], trans: ITranslation): string {
  const gpus = sum(nodes, gpusOf);
  const cpus = sum(nodes, node => [share(node, 'cpus')]);
  const parts = [trans.__('Machines that take jobs: %1 of %2', nodes.filter(takesJobs).length, nodes.length)];
  if (gpus.total > 0) {
    parts.push(trans.__('GPUs free: %1 of %2', gpus.free, gpus.total));
  }
  parts.push(trans.__('CPUs free: %1 of %2', cpus.free, cpus.total));
  return parts.join(' · ');
}

/** What maintenance is planned or under way: a line for each, nothing where there is none. */
function PlannedMaintenance({ nodes }: { nodes: readonly INode[] }): React.ReactElement | null {
  const { trans, language } = useHost();
  const planned = maintenanceOf(nodes);
  return planned.length === 0 ? null : (
    <ul className="pai-Maintenance" aria-label={trans.__('Maintenance')}>
      {planned.map(one => (
        <li key={one.name}>{maintenanceText(one, trans, language)}</li>
      ))}
    </ul>
  );
}

function VirtualClusterBar({ cluster }: { cluster: IVirtualCluster }): React.ReactElement {
  const { trans, language } = useHost();
  const { name, used, total, guaranteed, most, running, waiting } = cluster;
  const text = cluster.of === 'GPUs' ? trans.__('%1 of %2 GPUs', used, most) : trans.__('%1 of %2 CPUs', used, most);
  return (
    <div className="pai-VirtualCluster">
      <Bar label={name} text={text} used={used} total={most > 0 ? most : total} mark={guaranteed} />
      <span className="pai-mod-secondary">
        {[
          cluster.stopped ? trans.__('stopped: takes no jobs') : '',
          trans.__('guaranteed: %1', guaranteed),
          trans.__('%1 running', running),
          trans.__('%1 waiting', waiting),
          cluster.shorterFirst ? trans.__('shorter jobs come first') : '',
          cluster.placement === 'spread'
            ? trans.__('what starts gets the emptiest machines')
            : trans.__('what starts fills machines')
        ]
          .filter(Boolean)
          .join(' · ')}
      </span>
      {cluster.shortestRemaining && (
        <span className="pai-mod-secondary">
          {trans.__('Jobs that need least GPU time to their end come first and stop others.')}
        </span>
      )}
      {cluster.levelGpuHours.length > 0 && (
        <span className="pai-mod-secondary">
          {trans.__(
            'A job goes to the next level when it has had so many GPU hours: %1. Lower levels come first and stop others.',
            cluster.levelGpuHours.map(hours => hours.toLocaleString(language)).join(' · ')
          )}
        </span>
      )}
      {cluster.fairShareHours > 0 && (
        <span className="pai-mod-secondary">
          {trans.__('Who has used less comes first; half counts after %1 hours.', cluster.fairShareHours)}{' '}
          {cluster.usedLately &&
            trans.__(
              'You have used %1 GPU hours lately: %2 % of all.',
              cluster.usedLately.gpuHours.toLocaleString(language, { maximumFractionDigits: 1 }),
              Math.round(cluster.usedLately.percent)
            )}
        </span>
      )}
    </div>
  );
}

function MachineList({ nodes }: { nodes: readonly INode[] }): React.ReactElement {
  const { trans } = useHost();
  const [words, setWords] = React.useState('');
  const [shown, setShown] = React.useState(SHOWN);
  const found = select(nodes, words);
  return (
    <section aria-label={trans.__('Machines')} role="region">
      <h3>{trans.__('Machines')}</h3>
      {nodes.length > MANY && (
        <input
          type="search"
          className="pai-Input pai-Machines-search"
          aria-label={trans.__('Find machines')}
          placeholder={trans.__('Name, rack, GPU type or job')}
          value={words}
          onChange={event => setWords(event.currentTarget.value)}
        />
      )}
      {found.length === 0 && <p role="status">{trans.__('No machine has all of that.')}</p>}
      <ul className="pai-Machines">
        {found.slice(0, shown).map(node => (
          <MachineCard key={node.name} node={node} />
        ))}
      </ul>
      {found.length > shown && (
        <button type="button" className="pai-Input" onClick={() => setShown(shown + SHOWN)}>
          {trans._n('Show %1 more machine', 'Show %1 more machines', Math.min(SHOWN, found.length - shown))}
        </button>
      )}
    </section>
  );
}

/** A machine: how it is, what of it is taken, and whose jobs have its GPUs. */
function MachineCard({ node }: { node: INode }): React.ReactElement {
  const { trans, language } = useHost();
  const holders = holdersOn(node);
  const disk = diskOf(node);
  const storage = share(node, 'storageGB');
  return (
    <li className="pai-Machine" data-state={shownState(node)}>
      <h4>{node.name}</h4>
      {node.rack && <span className="pai-mod-secondary">{trans.__('rack %1', node.rack)}</span>}
      <State shape={machineShape(node)}>{machineLabel(node, trans, language)}</State>
      {gpusOf(node).map(gpus => (
        <Gpus key={gpus.type} gpus={gpus} />
      ))}
      <FreeBar label={trans.__('CPUs')} of={share(node, 'cpus')} />
      <FreeBar label={trans.__('Memory (GB)')} of={inGb(share(node, 'memoryMB'))} />
      {disk && <FreeBar label={trans.__('Disk (GB)')} of={inGb(disk)} />}
      <span className="pai-mod-secondary">
        {trans.__('Disk that jobs may still reserve: %1 of %2 GB', storage.free, storage.total)}
      </span>
      {holders.length > 0 && <span>{trans.__('GPUs held by: %1', holders.join(', '))}</span>}
    </li>
  );
}

/** Shows one square for each GPU beneath how many are free. */
function Gpus({ gpus }: { gpus: IGpus }): React.ReactElement {
  const { trans } = useHost();
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

function FreeBar({ label, of: { free, total } }: { label: string; of: IShare }): React.ReactElement {
  const { trans } = useHost();
  const text = trans.__('%1 of %2 free', free, total);
  return <Bar label={label} text={text} used={Math.max(0, total - free)} total={total} />;
}

function inGb({ free, total }: IShare): IShare {
  return { free: Math.floor(free / 1024), total: Math.floor(total / 1024) };
}
