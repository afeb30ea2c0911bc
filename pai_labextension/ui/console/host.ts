// What the console needs of the place where it is mounted: JupyterLab, a notebook's output, a page of its own.

import * as React from 'react';

import type { Client, IJobName } from './data/client';
import type { IChannel, IHeard } from './data/stream';

/** A person's language; JupyterLab's `TranslationBundle` is one. */
export interface ITranslation {
  /** Translate a sentence; `%1`, `%2` … in it are the values. */
  __(text: string, ...values: unknown[]): string;
  /** Translate a sentence that has one form for 1 and another for other numbers; `%1` is the number. */
  _n(one: string, many: string, count: number, ...values: unknown[]): string;
}

/** What stands after the `?` of an address; what is `undefined` is left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** What is asked of the server. */
export interface IQuestion {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the routes of this project; its parts, not encoded. */
  readonly path: readonly string[];
  readonly query?: Query | undefined;
  /** A string is JSON already, with comments or without; a blob is sent as it is; all else becomes JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** Told how many bytes of the body have gone off. */
  readonly onUpload?: ((bytes: number) => void) | undefined;
}

/** How the console reaches the server. */
export interface ITransport {
  /** Ask; the answer may be a refusal. Rejects with `ApiError` (status 0) where nobody answers. */
  request(question: IQuestion): Promise<Response>;
  /** Return the address that a browser may open, or load, by itself; empty: there is none. */
  href(path: readonly string[], query?: Query): string;
  /** Return a link that the server has told, absolute or below its own address, as the browser opens it. */
  resolve(link: string): string;
  /** Connect to what is told without being asked for; absent: there is no such way. */
  connect?(heard: IHeard): IChannel;
  /** Open a WebSocket to the console's own server, which has shown where it comes from; where that is asked for. */
  socket?(path: readonly string[]): WebSocket;
}

/** Something that can be looked at. */
export type Place =
  | { readonly page: 'jobs' | 'queue' | 'cluster' | 'schedules' | 'servers' }
  /** What administrators do, in one of its parts. */
  | { readonly page: 'admin'; readonly show?: string }
  /** The page of a job, on one of its tabs. */
  | { readonly page: 'job'; readonly job: IJobName; readonly tab?: string }
  /** The job editor: empty, or with a copy of a job. */
  | { readonly page: 'submit'; readonly from?: IJobName }
  /** A way into a task of a job; without `task` ("worker-0") the person chooses one. */
  | { readonly page: 'terminal' | 'connect'; readonly job: IJobName; readonly task?: string }
  | { readonly page: 'storage'; readonly path: string };

/** Leads to places. */
export interface INavigator {
  /** Show a place; with `instead` in place of the one that is shown, which nobody goes back to. */
  open(place: Place, instead?: boolean): void;
  /** Return whether there is such a page where the console is mounted. */
  has(page: Place['page']): boolean;
  /** Return the address of a place, which others can open too; `null`: it has none. */
  href(place: Place): string | null;
}

/** What the server has written of itself. */
export interface IFacts {
  /** The name of the job that this notebook server is; empty where it is none. */
  readonly ownServer: string;
  /** What the cluster calls its storage, as a URI. */
  readonly storageRoot: string;
  /** Whether the server leads to the ports of tasks. */
  readonly hasPorts: boolean;
  /** Whether the pages for administrators are shown; what they may do is decided elsewhere. */
  readonly isAdministrator: boolean;
  /** By which the page's policy knows style sheets that a library writes; absent: it asks for nothing. */
  readonly styleNonce?: string | undefined;
}

/** The place where the console is mounted. */
export interface IHost {
  readonly client: Client;
  readonly transport: ITransport;
  readonly trans: ITranslation;
  /** The person's language as browsers name it ("zh-CN"). */
  readonly language: string;
  readonly facts: IFacts;
  readonly places: INavigator;
  /** Where dialogs and menus live: the page's body, or the shadow root that has our styles. */
  readonly root: ParentNode;
}

const HostContext = React.createContext<IHost | null>(null);
const ShownContext = React.createContext(true);

/** Hands the host to all that is drawn in it. */
export const HostProvider = HostContext.Provider;

/** Says to all that is drawn in it whether it is in view. */
export const ShownProvider = ShownContext.Provider;

/** Return the place where this is mounted. */
export function useHost(): IHost {
  const host = React.useContext(HostContext);
  if (host === null) {
    throw new Error('there is no HostProvider around this');
  }
  return host;
}

/** Return whether this is in view: only then anything is asked for again and again. */
export function useShown(): boolean {
  return React.useContext(ShownContext);
}

/** Return the headers and the body with which a question is sent. */
export function carried(
  { body }: Pick<IQuestion, 'body'>,
  language: string
): { headers: Record<string, string>; body: Blob | string | null } {
  const headers: Record<string, string> = { 'Accept-Language': language };
  if (body === undefined) {
    return { headers, body: null };
  }
  if (body instanceof Blob) {
    return { headers: { ...headers, 'Content-Type': 'application/octet-stream' }, body };
  }
  headers['Content-Type'] = 'application/json';
  return { headers, body: typeof body === 'string' ? body : JSON.stringify(body) };
}

/** Return a path and a query as they stand in an address, without a slash before. */
export function addressOf(path: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = given.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return path.map(encodeURIComponent).join('/') + (text.length > 0 ? `?${text.join('&')}` : '');
}

/** Return the address of a place, below that of the console. */
export function pathOf(place: Place): string {
  switch (place.page) {
    case 'job':
      return addressOf(['jobs', place.job.username, place.job.name], { tab: place.tab });
    case 'terminal':
    case 'connect':
      return addressOf([place.page, place.job.username, place.job.name], { task: place.task });
    case 'submit':
      return addressOf(['submit'], { from: place.from && `${place.from.username}/${place.from.name}` });
    case 'admin':
      return addressOf(['admin'], { show: place.show });
    case 'storage':
      return addressOf(['storage'], { path: place.path || undefined });
    default:
      return place.page;
  }
}

/** Sentences by their English, each with its forms; as JupyterLab's catalogs are. */
export type Catalog = Readonly<Record<string, readonly string[]>>;

/** Translate by a catalog; English where it has nothing. */
export function translation(catalog: Catalog): ITranslation {
  const filled = (text: string, values: readonly unknown[]) =>
    text.replace(/%(\d+)/g, (written, number: string) => {
      const value = values[Number(number) - 1];
      return typeof value === 'string' || typeof value === 'number' ? String(value) : written;
    });
  return {
    __: (text, ...values) => filled(catalog[text]?.[0] ?? text, values),
    _n: (one, many, count, ...values) => {
      const forms = catalog[one] ?? [one, many];
      return filled((count === 1 ? forms[0] : (forms[1] ?? forms[0])) ?? one, [count, ...values]);
    }
  };
}
