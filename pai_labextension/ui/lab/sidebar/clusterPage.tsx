// The page of the cluster: what of its GPUs is taken, now and over the day, its virtual clusters, its machines.

import * as React from 'react';

import { INode } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { PageError } from '../../console/kit/status';
import { Bar } from './bar';
import { ClusterModel, gpuTypes, IVirtualCluster } from './cluster';
import { MachineCard } from './machineCard';
import { gpusOf, select, share, sum, takesJobs } from './machines';
import { PlannedMaintenance } from './plannedMaintenance';
import { untilNow } from './usage';
import { UsageChart } from './usageChart';

interface IClusterPageProps {
  cluster: ClusterModel;
  trans: ITranslation;
  language: string;
}

/** Beyond so many machines there is a field to look for some, and so many are shown at first. */
const MANY = 10;
const SHOWN = 100;

export function ClusterPage({ cluster, trans, language }: IClusterPageProps): React.ReactElement {
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
      <PlannedMaintenance nodes={nodes} trans={trans} language={language} />
      {types.map(({ type, used, total }) => (
        <Bar key={type} label={type} text={usedText(used, total, trans)} used={used} total={total} />
      ))}
      {usage.answer && (
        <UsageChart usage={untilNow(usage.answer, types, machines.answeredAt)} trans={trans} language={language} />
      )}
      {virtualClusters.answer && (
        <section>
          <h3>{trans.__('Virtual clusters')}</h3>
          {virtualClusters.answer.map(each => (
            <VirtualClusterBar key={each.name} cluster={each} trans={trans} language={language} />
          ))}
        </section>
      )}
      <MachineList nodes={nodes} trans={trans} language={language} />
    </div>
  );
}

interface IVirtualClusterBarProps {
  cluster: IVirtualCluster;
  trans: ITranslation;
  language: string;
}

function VirtualClusterBar({ cluster, trans, language }: IVirtualClusterBarProps): React.ReactElement {
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

interface IMachineListProps {
  nodes: readonly INode[];
  trans: ITranslation;
  language: string;
}

function MachineList({ nodes, trans, language }: IMachineListProps): React.ReactElement {
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
          <MachineCard key={node.name} node={node} trans={trans} language={language} />
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

function usedText(used: number, total: number, trans: ITranslation): string {
  return trans.__('%1 of %2 used', used, total);
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
