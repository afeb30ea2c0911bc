// The page of the cluster: what of its GPUs is taken, now and over the day, its virtual clusters, its machines.

import * as React from 'react';

import { INode } from '../data/client';
import {
  ClusterModel,
  diskOf,
  gpusOf,
  gpuTypes,
  holdersOn,
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
import { Bar, Figures, PageError, State } from '../kit/status';
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
      <Figures large figures={figuresOf(nodes, virtualClusters.answer ?? [], trans)} />
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

/** What of the cluster is used and waits; free is what is free where something new may start. */
function figuresOf(
  nodes: readonly INode[],
  clusters: readonly IVirtualCluster[],
  trans: ITranslation
): [string, React.ReactNode][] {
  const used = gpuTypes(nodes).reduce((count, type) => count + type.used, 0);
  const gpus = sum(nodes, gpusOf);
  const cpus = (of: 'used' | 'total') => nodes.reduce((count, node) => count + node[of].cpus, 0);
  const waiting = clusters.reduce((count, cluster) => count + cluster.waiting, 0);
  const ofGpus: [string, React.ReactNode][] = [
    [trans.__('GPUs used'), trans.__('%1 of %2', used, gpus.total)],
    [trans.__('GPUs free'), gpus.free]
  ];
  return [
    ...(gpus.total > 0 ? ofGpus : []),
    [trans.__('CPUs used'), trans.__('%1 of %2', cpus('used'), cpus('total'))],
    [trans.__('Waiting jobs'), waiting],
    [trans.__('Machines that take jobs'), trans.__('%1 of %2', nodes.filter(takesJobs).length, nodes.length)]
  ];
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

/** A virtual cluster: what of it is taken, and by which rules it gives the rest. */
function VirtualClusterBar({ cluster }: { cluster: IVirtualCluster }): React.ReactElement {
  const { trans, language } = useHost();
  const { name, used, total, guaranteed, most, running, waiting } = cluster;
  const text = cluster.of === 'GPUs' ? trans.__('%1 of %2 GPUs', used, most) : trans.__('%1 of %2 CPUs', used, most);
  const state = [
    cluster.stopped ? trans.__('stopped: takes no jobs') : '',
    trans.__('guaranteed: %1', guaranteed),
    trans.__('%1 running', running),
    trans.__('%1 waiting', waiting)
  ];
  return (
    <details className="pai-VirtualCluster">
      <summary>
        <Bar label={name} text={text} used={used} total={most > 0 ? most : total} mark={guaranteed} />
        <span className="pai-mod-secondary">{state.filter(Boolean).join(' · ')}</span>
      </summary>
      <ul className="pai-mod-secondary">
        {rulesOf(cluster, trans, language).map(rule => (
          <li key={rule}>{rule}</li>
        ))}
      </ul>
    </details>
  );
}

/** Return the rules of a virtual cluster, a sentence each. */
export function rulesOf(cluster: IVirtualCluster, trans: ITranslation, language: string): string[] {
  const { levelGpuHours, fairShareHours, usedLately } = cluster;
  return [
    cluster.placement === 'spread'
      ? trans.__('what starts gets the emptiest machines')
      : trans.__('what starts fills machines'),
    cluster.shorterFirst && trans.__('shorter jobs come first'),
    cluster.shortestRemaining && trans.__('Jobs that need least GPU time to their end come first and stop others.'),
    levelGpuHours.length > 0 &&
      trans.__(
        'A job goes to the next level when it has had so many GPU hours: %1. Lower levels come first and stop others.',
        levelGpuHours.map(hours => hours.toLocaleString(language)).join(' · ')
      ),
    fairShareHours > 0 && trans.__('Who has used less comes first; half counts after %1 hours.', fairShareHours),
    fairShareHours > 0 &&
      usedLately &&
      trans.__(
        'You have used %1 GPU hours lately: %2 % of all.',
        usedLately.gpuHours.toLocaleString(language, { maximumFractionDigits: 1 }),
        Math.round(usedLately.percent)
      )
  ].filter((rule): rule is string => Boolean(rule));
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
      <div className="pai-Machines">
        {found.slice(0, shown).map(node => (
          <MachineTile key={node.name} node={node} />
        ))}
      </div>
      {found.length > shown && (
        <button type="button" className="pai-Input" onClick={() => setShown(shown + SHOWN)}>
          {trans._n('Show %1 more machine', 'Show %1 more machines', Math.min(SHOWN, found.length - shown))}
        </button>
      )}
    </section>
  );
}

/** A machine as a tile: its state, a square for each GPU; opened: what of it is taken, and whose jobs have its GPUs. */
function MachineTile({ node }: { node: INode }): React.ReactElement {
  const { trans, language } = useHost();
  const holders = holdersOn(node);
  const disk = diskOf(node);
  const gpus = gpusOf(node);
  const storage = share(node, 'storageGB');
  const squares = gpus.flatMap(each => each.holders);
  const held = squares.filter(holder => holder.held !== 'no');
  return (
    <details className="pai-Machine" data-state={shownState(node)}>
      <summary>
        <State shape={machineShape(node)}>{node.name}</State>
        <span className="pai-Machine-squares" aria-hidden="true">
          {squares.map((holder, number) => (
            <span key={number} className="pai-Machine-square" data-held={holder.held} title={title(holder, trans)} />
          ))}
        </span>
        {gpus.length > 0 && (
          <span className="pai-mod-unseen">{trans.__('%1 of %2 GPUs', held.length, squares.length)}</span>
        )}
      </summary>
      <span>{machineLabel(node, trans, language)}</span>
      {node.rack && <span className="pai-mod-secondary">{trans.__('rack %1', node.rack)}</span>}
      {gpus.map(each => (
        <UsedBar key={each.type} label={each.simulated ? trans.__('%1 (simulated)', each.type) : each.type} of={each} />
      ))}
      <UsedBar label={trans.__('CPUs')} of={share(node, 'cpus')} />
      <UsedBar label={trans.__('Memory (GB)')} of={inGb(share(node, 'memoryMB'))} />
      {disk && <UsedBar label={trans.__('Disk (GB)')} of={inGb(disk)} />}
      <span className="pai-mod-secondary">
        {trans.__('Disk that jobs may still reserve: %1 of %2 GB', storage.free, storage.total)}
      </span>
      {holders.length > 0 && <span>{trans.__('GPUs held by: %1', holders.join(', '))}</span>}
    </details>
  );
}

function title({ held, name }: IHolder, trans: ITranslation): string {
  return name ?? (held === 'no' ? trans.__('free') : trans.__('another user’s job'));
}

function UsedBar({ label, of: { free, total } }: { label: string; of: IShare }): React.ReactElement {
  const { trans } = useHost();
  const used = Math.max(0, total - free);
  return <Bar label={label} text={trans.__('%1 of %2 used', used, total)} used={used} total={total} />;
}

function inGb({ free, total }: IShare): IShare {
  return { free: Math.floor(free / 1024), total: Math.floor(total / 1024) };
}
