// The storage, whose folder stands in the address.

import * as React from 'react';

import { Place, useHost } from '../console/host';
import { StorageList } from '../console/storage/list';
import type { IPageProps } from './pages';

import 'style/properties.css';
import 'style/storage.css';
import 'style/uploads.css';

export default function StoragePlace({ place }: IPageProps<Extract<Place, { page: 'storage' }>>): React.ReactElement {
  const { places } = useHost();
  return <StorageList path={place.path} onOpen={path => places.open({ page: 'storage', path })} />;
}
