// The pages of administrators, whose part stands in the address.

import * as React from 'react';

import { AdminClient } from '../console/admin/client';
import { AdminModel } from '../console/admin/model';
import { AdminPage, PARTS } from '../console/admin/page';
import { Place, useHost } from '../console/host';
import { PageError } from '../console/kit/status';
import type { IModels, IPageProps } from './pages';

export default function AdminPlace({
  place,
  models
}: IPageProps<Extract<Place, { page: 'admin' }>>): React.ReactElement {
  const { facts, trans } = useHost();
  return facts.isAdministrator ? (
    <Known models={models} show={place.show} />
  ) : (
    <PageError text={trans.__('This page is for administrators of the Hub.')} />
  );
}

function Known({ models, show }: { models: IModels; show: string | undefined }): React.ReactElement {
  const { client, transport, trans } = useHost();
  const [model] = React.useState(() => new AdminModel(new AdminClient(transport, trans), client, models.cluster));
  React.useEffect(() => () => model.dispose(), [model]);
  return <AdminPage model={model} part={PARTS.find(part => part === show) ?? 'overview'} />;
}
