// Addresses of the console's pages: which place an address is, and going from one to another.

import { Signal } from '../console/data/store';
import { INavigator, pathOf, Place } from '../console/host';

/** Knows where the person is, and leads elsewhere. */
export class Router implements INavigator {
  /**
   * @param prefix - the path below which the pages are, with a slash at both ends
   * @param pages - those that are here
   */
  constructor(
    private readonly prefix: string,
    private readonly pages: readonly string[]
  ) {
    window.addEventListener('popstate', () => this.changed.emit());
  }

  /** Emitted when another place is shown. */
  readonly changed = new Signal();

  /** Where the person is; what no address names is the list of jobs. */
  get place(): Place {
    return placeOf(location.pathname.slice(this.prefix.length) + location.search) ?? { page: 'jobs' };
  }

  has(page: Place['page']): boolean {
    return this.pages.includes(page);
  }

  href(place: Place): string | null {
    return this.has(place.page) ? this.prefix + pathOf(place) : null;
  }

  open(place: Place, instead = false): void {
    const address = this.href(place);
    if (address === null || address === location.pathname + location.search) {
      return;
    }
    const shown = this.place.page;
    if (place.page !== shown && [place.page, shown].includes('terminal')) {
      // its page has another policy, which comes with the page
      location.assign(address);
    } else if (instead) {
      history.replaceState(null, '', address);
      this.changed.emit();
    } else {
      history.pushState(null, '', address);
      this.changed.emit();
    }
  }
}

/** The pages whose address is their name alone. */
const PLAIN = ['jobs', 'queue', 'cluster', 'schedules', 'servers'] as const;

/** Return the place of an address below the prefix; `null`: there is none. */
export function placeOf(address: string): Place | null {
  const at = new URL(address, 'http://here/');
  const [page = '', ...names] = at.pathname.split('/').filter(part => part !== '');
  const given = (name: string) => at.searchParams.get(name);
  const [username, name] = names.map(decoded);
  if (username !== undefined && name !== undefined && names.length === 2) {
    const job = { username, name };
    if (page === 'jobs') {
      const tab = given('tab');
      return { page: 'job', job, ...(tab === null ? {} : { tab }) };
    }
    if (page === 'terminal' || page === 'connect') {
      const task = given('task');
      return { page, job, ...(task === null ? {} : { task }) };
    }
    return null;
  }
  if (names.length > 0) {
    return null;
  }
  switch (page) {
    case 'submit': {
      const [of = '', called = ''] = (given('from') ?? '').split('/');
      return { page, ...(called === '' ? {} : { from: { username: of, name: called } }) };
    }
    case 'storage':
      return { page, path: given('path') ?? '' };
    case 'admin': {
      const show = given('show');
      return { page, ...(show === null ? {} : { show }) };
    }
    default: {
      const plain = PLAIN.find(one => one === page);
      return plain ? { page: plain } : null;
    }
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
