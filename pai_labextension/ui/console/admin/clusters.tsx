// Virtual clusters as administrators see them: quotas, users, on and off.

import * as React from 'react';

import { rulesOf } from '../cluster/page';
import { IVirtualCluster } from '../data/cluster';
import { IHost, useHost } from '../host';
import { TextButton } from '../kit/button';
import { confirm } from '../kit/dialog';
import { IEntry } from '../kit/menu';
import { Table } from '../kit/table';
import { askShares, sayRefused } from './ask';
import { AdminModel } from './model';

interface IPartProps {
  model: AdminModel;
}

export function VirtualClusters({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const clusters = model.cluster.virtualClusters.answer;
  if (clusters === null) {
    return <p role="status">{trans.__('One moment …')}</p>;
  }
  const edit = async (one: IVirtualCluster | null) => {
    const given = await askShares(host, clusters, one);
    if (given) {
      await sayRefused(
        host,
        await model.withAll(
          [given],
          ({ name }) => name,
          ({ name, shares }) => model.admin.setShares(name, shares)
        )
      );
    }
  };
  const rules = (cluster: IVirtualCluster) => rulesOf(cluster, trans, language).join(' · ');
  return (
    <>
      <Table
        label={trans.__('Virtual clusters')}
        rows={clusters}
        keyOf={one => one.name}
        nameOf={one => one.name}
        none=""
        columns={[
          { title: trans.__('Name'), cell: one => one.name, order: one => one.name },
          {
            title: trans.__('In use'),
            cell: one => `${one.used} / ${one.most} ${one.of === 'GPUs' ? trans.__('GPUs') : trans.__('CPUs')}`,
            order: one => -one.used
          },
          { title: trans.__('Running'), cell: one => one.running, order: one => -one.running },
          { title: trans.__('Waiting'), cell: one => one.waiting, order: one => -one.waiting },
          { title: trans.__('Guaranteed'), cell: one => `${one.capacity} %`, order: one => -one.capacity },
          { title: trans.__('Maximum'), cell: one => `${one.maxCapacity} %`, order: one => -one.maxCapacity },
          {
            title: trans.__('Policy'),
            cell: one => (one.stopped ? `${trans.__('stopped: takes no jobs')} · ${rules(one)}` : rules(one))
          }
        ]}
        actions={one => clusterEntries(one, edit, model, host)}
      />
      <TextButton icon="add" onClick={() => void edit(null)}>
        {trans.__('New virtual cluster')}
      </TextButton>
    </>
  );
}

function clusterEntries(
  one: IVirtualCluster,
  edit: (one: IVirtualCluster | null) => Promise<void>,
  model: AdminModel,
  host: IHost
): IEntry[] {
  const { trans } = host;
  const act = async (does: () => Promise<void>) => sayRefused(host, await model.withAll([one], () => one.name, does));
  const stop = async () => {
    const meant = await confirm(host, {
      title: trans.__('Stop virtual cluster “%1”?', one.name),
      text: trans._n(
        'It takes no jobs any more. %1 job goes on running, those that wait go on waiting.',
        'It takes no jobs any more. %1 jobs go on running, those that wait go on waiting.',
        one.running
      ),
      accept: trans.__('Stop'),
      warn: true
    });
    if (meant) {
      await act(() => model.admin.setStopped(one.name, true));
    }
  };
  const remove = async () => {
    const meant = await confirm(host, {
      title: trans.__('Delete virtual cluster “%1”?', one.name),
      text: trans.__('Its quota of %1 % goes to “default”.', one.capacity),
      accept: trans.__('Delete'),
      warn: true
    });
    if (meant) {
      await act(() => model.admin.deleteVirtualCluster(one.name));
    }
  };
  // (it has what the others leave)
  return one.name === 'default'
    ? [{ label: trans.__('New virtual cluster'), icon: 'add', act: () => void edit(null) }]
    : [
        { label: trans.__('Change quota and users'), icon: 'save', act: () => void edit(one) },
        one.stopped
          ? {
              label: trans.__('Start'),
              icon: 'check',
              act: () => void act(() => model.admin.setStopped(one.name, false))
            }
          : { label: trans.__('Stop'), icon: 'stop', act: () => void stop() },
        { label: trans.__('Delete'), icon: 'delete', act: () => void remove() }
      ];
}
