// What the console needs of the place where it is mounted: JupyterLab, a notebook's output, a page of its own.

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
  /** Return the address that a browser may open, or load, by itself. */
  href(path: readonly string[], query?: Query): string;
  /** Return a link that the server has told, absolute or below its own address, as the browser opens it. */
  resolve(link: string): string;
}

/** Return a path and a query as they stand in an address, without a slash before. */
export function addressOf(path: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = given.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return path.map(encodeURIComponent).join('/') + (text.length > 0 ? `?${text.join('&')}` : '');
}
