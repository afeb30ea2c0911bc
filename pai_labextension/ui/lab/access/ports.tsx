// Links to what listens on a task's ports.

import * as React from 'react';

import { IConnect } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { ConnectModel } from './connectModel';
import { PortLink } from '../../console/access/ports';

/** All ports of a task, with what may be done with them. */
export function PortsGuide(props: { model: ConnectModel; connect: IConnect; trans: ITranslation }): React.ReactElement {
  const { model, connect, trans } = props;
  if (connect.ports.length === 0) {
    return <p>{trans.__('This task has no ports. They are listed as portList in a task role.')}</p>;
  }
  return (
    <>
      <p>{trans.__('Each link opens what listens on that port of the task; only you can open it.')}</p>
      <table className="pai-Values">
        <caption>{trans.__('Ports')}</caption>
        <tbody>
          {connect.ports.map(({ label, port, url }) => (
            <tr key={`${label} ${port}`}>
              <th scope="row">
                <PortLink label={label} url={model.link(url)} title={trans.__('Open port %1', port)} />
              </th>
              <td>{port}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
