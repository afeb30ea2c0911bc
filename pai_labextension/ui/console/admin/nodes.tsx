// Nodes as administrators see them: cordon, drain, maintenance.

import * as React from 'react';

import { gpusOf, share } from '../data/cluster';
import { INode } from '../data/client';
import { messageOf } from '../data/errors';
import { key } from '../data/jobs';
import { machineLabel, machineShape, shownState } from '../data/words';
import { IHost, useHost } from '../host';
import { confirm } from '../kit/dialog';
import { IEntry } from '../kit/menu';
import { State } from '../kit/status';
import { IColumn, Table } from '../kit/table';
import { LocalTime } from '../kit/time';
import { askMaintenance, askText, sayRefused } from './ask';
import { IMaintenance } from './client';
import { AdminModel, gb } from './model';

interface IPartProps {
  model: AdminModel;
}

export function Nodes({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const nodes = model.cluster.machines.answer;
  const amount = (node: INode, kind: 'cpus' | 'memoryMB') => {
    const { free, total } = share(node, kind);
    return kind === 'cpus' ? `${total - free} / ${total}` : `${gb(total - free)} / ${gb(total)} GB`;
  };
  const columns: IColumn<INode>[] = [
    { title: trans.__('Node'), cell: node => node.name, order: node => node.name },
    {
      title: trans.__('State'),
      cell: node => <State shape={machineShape(node)}>{machineLabel(node, trans, language)}</State>,
      order: node => shownState(node)
    },
    {
      title: trans.__('GPUs in use'),
      cell: node =>
        gpusOf(node)
          .map(({ type, free, total }) => `${type} ${total - free} / ${total}`)
          .join(', ') || '–',
      order: node => -node.gpus.filter(gpu => gpu.job !== null).length
    },
    { title: trans.__('CPUs in use'), cell: node => amount(node, 'cpus'), order: node => -node.used.cpus },
    { title: trans.__('Memory in use'), cell: node => amount(node, 'memoryMB'), order: node => -node.used.memoryMB }
  ];
  if (nodes === null) {
    return <p role="status">{trans.__('One moment …')}</p>;
  }
  return (
    <>
      <Table
        label={trans.__('Nodes')}
        rows={nodes}
        columns={columns}
        keyOf={node => node.name}
        nameOf={node => node.name}
        none={trans.__('No machine has joined yet.')}
        actions={node => nodeEntries([node], model, host)}
        actionsOfMany={many => nodeEntries(many, model, host)}
      />
      <Windows model={model} />
    </>
  );
}

/** What maintenance is planned or under way. */
function Windows({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const time = (ms: number) => <LocalTime time={new Date(ms)} language={language} form="minutes" />;
  const forget = async (one: IMaintenance) => {
    const meant = await confirm(host, {
      title: trans.__('Delete maintenance “%1”?', one.name),
      text: trans.__('Tasks may start again on %1.', one.nodes.join(', ')),
      accept: trans.__('Delete'),
      warn: true
    });
    if (meant) {
      await sayRefused(
        host,
        await model.withAll(
          [one],
          ({ name }) => name,
          ({ name }) => model.admin.deleteMaintenance(name)
        )
      );
    }
  };
  return (
    <section>
      <h2>{trans.__('Maintenance')}</h2>
      <Table
        label={trans.__('Maintenance')}
        rows={model.maintenance.answer ?? []}
        keyOf={one => one.name}
        nameOf={one => one.name}
        none={trans.__('No maintenance is planned. Choose nodes above to plan one.')}
        columns={[
          { title: trans.__('Name'), cell: one => one.name, order: one => one.name },
          { title: trans.__('Nodes'), cell: one => one.nodes.join(', '), order: one => one.nodes.join(' ') },
          { title: trans.__('Beginning'), cell: one => time(one.begin), order: one => one.begin },
          { title: trans.__('End'), cell: one => time(one.end), order: one => one.end },
          { title: trans.__('Reason'), cell: one => one.reason, order: one => one.reason }
        ]}
        actions={one => [{ label: trans.__('Delete'), icon: 'delete', act: () => void forget(one) }]}
      />
    </section>
  );
}

function nodeEntries(nodes: readonly INode[], model: AdminModel, host: IHost): IEntry[] {
  const { trans } = host;
  const names = nodes.map(node => node.name).join(', ');
  const withAll = async (act: (node: INode) => Promise<void>) =>
    sayRefused(host, await model.withAll(nodes, node => node.name, act));
  const cordon = async () => {
    const reason = await askText(host, {
      title: trans.__('Cordon %1?', names),
      text: trans.__('No new task starts there. What runs there goes on.'),
      label: trans.__('Reason, shown to users whose jobs wait'),
      needed: true,
      accept: trans.__('Cordon')
    });
    if (reason) {
      await withAll(node => model.admin.cordon(node.name, reason));
    }
  };
  const drain = async () => {
    const hits = await model.jobsOn(nodes.map(node => node.name));
    const stopped = new Map(hits.map(job => [key(job), job]));
    const reason = await askText(host, {
      title: trans.__('Drain %1?', names),
      text:
        stopped.size === 0
          ? trans.__('No new task starts there. Nothing runs there now.')
          : trans.__('No new task starts there, and these jobs are stopped, with their tasks on other nodes:'),
      hits: hits.map(({ tasks, username, node, name }) =>
        trans._n('%1 task of %2 on %3: %4', '%1 tasks of %2 on %3: %4', tasks, username, node, name)
      ),
      label: trans.__('Reason, shown to users whose jobs wait'),
      needed: true,
      accept:
        stopped.size === 0
          ? trans.__('Drain')
          : trans._n('Drain and stop %1 job', 'Drain and stop %1 jobs', stopped.size),
      warn: true
    });
    if (reason) {
      await withAll(node => model.admin.cordon(node.name, reason));
      await sayRefused(
        host,
        await model.withAll(
          [...stopped.values()],
          job => job.name,
          job => model.stop(job, reason)
        )
      );
    }
  };
  const plan = async () => {
    const window = await askMaintenance(
      host,
      nodes.map(node => node.name),
      Date.now()
    );
    if (window) {
      await sayRefused(
        host,
        await model.withAll(
          [window],
          ({ name }) => name,
          one => model.admin.planMaintenance(one)
        )
      );
    }
  };
  // (maintenance opens a node by itself)
  const isClosed = nodes.every(node => node.closed !== null && node.closed.until === undefined);
  return [
    isClosed
      ? {
          label: trans.__('Uncordon'),
          icon: 'check',
          act: () => void withAll(node => model.admin.cordon(node.name, null))
        }
      : { label: trans.__('Cordon'), icon: 'close', act: () => void cordon() },
    {
      label: trans.__('Drain'),
      icon: 'down',
      act: () => void drain().catch((error: unknown) => sayRefused(host, [messageOf(error)]))
    },
    { label: trans.__('Plan maintenance'), icon: 'add', act: () => void plan() }
  ];
}
