// Addresses of the console's pages: which place an address is, and going from one to another.

import { Signal } from '../console/data/store';
import { addressOf, INavigator, Place } from '../console/host';

/** The pages that are here. */
const PAGES: readonly Place['page'][] = ['jobs', 'queue', 'cluster', 'job'];

/** Knows where the person is, and leads elsewhere. */
export class Router implements INavigator {
  /** @param prefix - the path below which the pages are, with a slash at both ends */
  constructor(private readonly prefix: string) {
    window.addEventListener('popstate', () => this.changed.emit());
  }

  /** Emitted when another place is shown. */
  readonly changed = new Signal();

  /** Where the person is; what no address names is the list of jobs. */
  get place(): Place {
    return placeOf(location.pathname.slice(this.prefix.length) + location.search) ?? { page: 'jobs' };
  }

  has(page: Place['page']): boolean {
    return PAGES.includes(page);
  }

  href(place: Place): string | null {
    const path = pathOf(place);
    return path === null ? null : this.prefix + path;
  }

  open(place: Place): void {
    const address = this.href(place);
    if (address !== null && address !== location.pathname + location.search) {
      history.pushState(null, '', address);
      this.changed.emit();
    }
  }
}

/** Return the place of an address below the prefix; `null`: there is none. */
export function placeOf(address: string): Place | null {
  const [path = '', query = ''] = address.split('?');
  const [page = '', ...names] = path.split('/').filter(part => part !== '');
  if (page === 'jobs' && names.length === 2) {
    const [username, name] = names.map(decoded) as [string, string];
    const tab = new URLSearchParams(query).get('tab');
    return { page: 'job', job: { username, name }, ...(tab === null ? {} : { tab }) };
  }
  return names.length === 0 && (page === 'jobs' || page === 'queue' || page === 'cluster') ? { page } : null;
}

/** Return the address of a place below the prefix; `null`: it has none. */
export function pathOf(place: Place): string | null {
  switch (place.page) {
    case 'jobs':
    case 'queue':
    case 'cluster':
      return place.page;
    case 'job':
      return addressOf(['jobs', place.job.username, place.job.name], { tab: place.tab });
    default:
      return null;
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
