// The machines: how each is, what is free on it, and whose jobs have its GPUs.

import { TranslationBundle } from '@jupyterlab/translation';
import { InputGroup } from '@jupyterlab/ui-components';
import * as React from 'react';

import { INode } from './api';
import { diskOf, gpusOf, IGpus, IShare, jobsOn, Machines, select, share, sum, takesJobs } from './machines';
import { ColumnTitles, PageError } from './page';
import { machineLabel, shownState } from './states';

interface IMachinesProps {
  machines: Machines;
  trans: TranslationBundle;
}

/** Beyond so many there is a field to look for some. */
const MANY = 10;

/** Shows all machines, as the model knows them. */
export function MachinesView({ machines, trans }: IMachinesProps): React.ReactElement {
  const [words, setWords] = React.useState('');
  const nodes = machines.answer;
  if (nodes === null || nodes.length === 0) {
    const none = nodes === null ? trans.__('Asking for the machines …') : trans.__('No machine has joined yet.');
    return machines.error ? <PageError text={machines.error} /> : <p role="status">{none}</p>;
  }
  const found = select(nodes, words);
  return (
    <>
      <PageError text={machines.error} />
      <p>{summary(nodes, trans)}</p>
      {nodes.length > MANY && (
        <InputGroup
          type="search"
          className="pai-Machines-search"
          aria-label={trans.__('Find machines')}
          placeholder={trans.__('Name, rack, GPU type or job')}
          value={words}
          onChange={event => setWords(event.currentTarget.value)}
        />
      )}
      {found.length === 0 ? (
        <p role="status">{trans.__('No machine has all of that.')}</p>
      ) : (
        <div className="pai-Table-scroll" tabIndex={0} role="region" aria-label={trans.__('Machines')}>
          <table className="pai-Table pai-Machines-table">
            <ColumnTitles
              columns={[
                [trans.__('Name')],
                [trans.__('State')],
                [trans.__('GPUs free')],
                [trans.__('CPUs free')],
                [trans.__('Memory free (GB)')],
                [trans.__('Disk free (GB)')],
                [trans.__('Jobs on its GPUs'), 'reason']
              ]}
            />
            <tbody>
              {found.map(node => (
                <MachineRow key={node.name} node={node} trans={trans} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function MachineRow({ node, trans }: { node: INode; trans: TranslationBundle }): React.ReactElement {
  const jobs = jobsOn(node);
  const memory = share(node, 'memoryMB');
  const gpus = gpusOf(node);
  return (
    <tr data-state={shownState(node)}>
      <th scope="row">
        {node.name}
        {node.rack && <span className="pai-mod-secondary">{trans.__('rack %1', node.rack)}</span>}
      </th>
      <td>
        <span className="pai-State" data-state={shownState(node)}>
          {machineLabel(node, trans)}
        </span>
      </td>
      <td>{gpus.length ? gpus.map(each => <Gpus key={each.type} gpus={each} trans={trans} />) : '–'}</td>
      <td>
        <Free of={share(node, 'cpus')} label={trans.__('CPUs free')} />
      </td>
      <td>
        <Free of={{ free: inGb(memory.free), total: inGb(memory.total) }} label={trans.__('Memory free (GB)')} />
      </td>
      <td>
        <Disk node={node} trans={trans} />
      </td>
      <td className="pai-Table-reason">{jobs.length > 0 && trans.__('Jobs on its GPUs: %1', jobs.join(', '))}</td>
    </tr>
  );
}

/** Shows one square for each GPU beside how many are free. */
function Gpus({ gpus, trans }: { gpus: IGpus; trans: TranslationBundle }): React.ReactElement {
  const type = gpus.simulated ? trans.__('%1 (simulated)', gpus.type) : gpus.type;
  return (
    <div className="pai-Machines-gpus">
      <span>
        {type}: {gpus.free}/{gpus.total}
      </span>
      <span className="pai-Machines-squares" aria-hidden="true">
        {gpus.holders.map((holder, number) => (
          <span
            key={number}
            className="pai-Machines-square"
            data-held={holder === null ? 'no' : holder === 'busy' ? 'busy' : 'known'}
            title={holder === null ? trans.__('free') : holder === 'busy' ? trans.__('another user’s job') : holder}
          />
        ))}
      </span>
    </div>
  );
}

/** Shows the room on the disk that tasks fill, and how much of it jobs may still reserve. */
function Disk({ node, trans }: { node: INode; trans: TranslationBundle }): React.ReactElement {
  const disk = diskOf(node);
  const storage = share(node, 'storageGB');
  return (
    <>
      {disk ? <Free of={{ free: inGb(disk.free), total: inGb(disk.total) }} label={trans.__('Disk free (GB)')} /> : '–'}
      <span className="pai-mod-secondary">{trans.__('left for jobs: %1/%2', storage.free, storage.total)}</span>
    </>
  );
}

function Free({ of: { free, total }, label }: { of: IShare; label: string }): React.ReactElement {
  return (
    <span className="pai-Machines-free">
      {free}/{total}
      <meter aria-label={label} min={0} max={total || 1} value={free} />
    </span>
  );
}

function inGb(mb: number): number {
  return Math.floor(mb / 1024);
}

function summary(nodes: readonly INode[], trans: TranslationBundle): string {
  const gpus = sum(nodes, gpusOf);
  const cpus = sum(nodes, node => [share(node, 'cpus')]);
  const parts = [trans.__('Machines that take jobs: %1 of %2', nodes.filter(takesJobs).length, nodes.length)];
  if (gpus.total > 0) {
    parts.push(trans.__('GPUs free: %1 of %2', gpus.free, gpus.total));
  }
  parts.push(trans.__('CPUs free: %1 of %2', cpus.free, cpus.total));
  return parts.join(' · ');
}
