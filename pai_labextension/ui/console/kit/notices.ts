// Notices that come by themselves, as JupyterLab's manager of notifications shows them.

/** What a person may do about a notice; it goes by that, unless the event is told not to. */
export interface INoticeAction {
  readonly label: string;
  readonly caption?: string;
  readonly displayType?: 'accent';
  readonly callback: (event: Pick<Event, 'preventDefault'>) => void;
}

export interface INoticeOptions {
  /** ms after which it goes by itself, if ever. */
  readonly autoClose: number | false;
  readonly actions?: INoticeAction[];
}

export type NoticeKind = 'info' | 'success' | 'warning' | 'error';

/** Shows notices. */
export interface INotices {
  /** Show one; return its name. */
  notify(message: string, type: NoticeKind, options: INoticeOptions): string;
  /** Show another one in its place. */
  update(
    notice: INoticeOptions & { readonly id: string; readonly message: string; readonly type: NoticeKind }
  ): boolean;
  dismiss(id: string): void;
  has(id: string): boolean;
}
