// Notebooks say where their kernels are that run as jobs: why one does not run yet, why it has ended, what can be done.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ISessionContext, ReactWidget } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import * as React from 'react';

import { IKernelState } from '../console/data/client';
import { OnSignal } from '../console/data/store';
import { ITranslation } from '../console/host';
import { TextButton } from '../console/kit/button';
import { IShown, isJobKernel, KernelsModel, shownOf } from '../console/session/kernels';
import { ILabHost } from './host';

export const kernelsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:kernels',
  description: 'Says in a notebook why its kernel waits for a GPU, or has given it back.',
  autoStart: true,
  requires: [ILabHost, INotebookTracker],
  activate: (app: JupyterFrontEnd, { client, trans }: ILabHost, notebooks: INotebookTracker) => {
    const { kernelspecs } = app.serviceManager;
    const model = new KernelsModel(client);
    const shown = new Set<NotebookPanel>();

    const settle = (panel: NotebookPanel, jobs: boolean) => {
      if (jobs !== shown.has(panel)) {
        if (jobs) {
          shown.add(panel);
        } else {
          shown.delete(panel);
        }
      }
      if (jobs || shown.size === 0) {
        model.setShown(jobs);
      }
    };

    notebooks.widgetAdded.connect((_, panel) => {
      const context = panel.sessionContext;
      const banner = new KernelBanner(
        model,
        {
          cancel: () => context.shutdown(),
          again: async name => {
            // the session of a kernel that is gone takes no other one
            await context.shutdown();
            await context.changeKernel({ name });
          }
        },
        trans
      );
      panel.contentHeader.insertWidget(0, banner);
      const follow = (context: ISessionContext) => {
        const kernel = context.session?.kernel;
        if (kernel) {
          // one that has ended is told of until there is another
          banner.kernelId = kernel.id;
          settle(panel, isJobKernel(kernelspecs.specs?.kernelspecs[kernel.name]));
        }
      };
      context.kernelChanged.connect(follow);
      context.statusChanged.connect(follow);
      panel.disposed.connect(() => settle(panel, false));
      follow(context);
    });
  }
};

// A line above a notebook whose kernel is a job: why it does not run yet, why it has ended, what can be done.

/** What a person may do about the kernel in front of them. */
export interface IKernelActions {
  /** Want it no more. */
  cancel(): Promise<void>;
  /** Start another one of its kind. */
  again(kernelName: string): Promise<void>;
}

export class KernelBanner extends ReactWidget {
  constructor(
    private readonly model: KernelsModel,
    private readonly actions: IKernelActions,
    private readonly trans: ITranslation
  ) {
    super();
    this.addClass('pai-KernelBanner');
    this.hide();
    this.deaf = model.changed.connect(() => this.settle());
  }

  /** The kernel that the notebook has, or had last. */
  get kernelId(): string {
    return this._kernelId;
  }

  set kernelId(id: string) {
    if (id !== this._kernelId) {
      this._kernelId = id;
      this.read = 0;
      this.settle();
    }
  }

  dispose(): void {
    this.sizes.disconnect();
    this.deaf();
    super.dispose();
  }

  protected render(): React.ReactElement {
    return (
      <OnSignal signal={this.model.changed}>
        {() => {
          const state = this.model.state(this._kernelId);
          const shown = state && shownOf(state, this.read, this.trans);
          return (
            <div role="status" ref={this.measure}>
              {shown && state && this.line(shown, state)}
            </div>
          );
        }}
      </OnSignal>
    );
  }

  private line({ kind, words, log }: IShown, state: IKernelState): React.ReactElement {
    const { trans } = this;
    return (
      <>
        <span className="pai-KernelBanner-words">{words}</span>
        {kind === 'waits' && (
          <TextButton onClick={() => this.run(this.actions.cancel())}>{trans.__('Cancel')}</TextButton>
        )}
        {kind === 'idle' && (
          <TextButton accept onClick={() => this.run(this.model.keep(state.id))}>
            {trans.__('Keep it')}
          </TextButton>
        )}
        {kind === 'ended' && (
          <TextButton accept onClick={() => this.run(this.actions.again(state.name))}>
            {trans.__('Start again')}
          </TextButton>
        )}
        {kind === 'died' && <TextButton onClick={() => this.dismiss(state.deaths)}>{trans.__('Close')}</TextButton>}
        {log && <pre className="pai-KernelBanner-log">{log}</pre>}
      </>
    );
  }

  /** Follow how high the words are: the panel above a notebook gives its parts only what they ask for. */
  private readonly measure = (line: HTMLElement | null): void => {
    this.sizes.disconnect();
    if (line) {
      this.sizes.observe(line);
    }
  };

  private dismiss(deaths: number): void {
    this.read = deaths;
    this.settle();
  }

  private run(action: Promise<void>): void {
    action.catch(error => console.error(error));
  }

  private settle(): void {
    const state = this.model.state(this._kernelId);
    const shown = state && shownOf(state, this.read, this.trans);
    this.toggleClass('pai-mod-warning', shown?.kind !== 'waits');
    this.setHidden(!shown);
    this.update();
  }

  private readonly sizes = new ResizeObserver(([entry]) => {
    this.node.style.minHeight = `${entry!.target.getBoundingClientRect().height}px`;
    this.parent?.fit();
  });
  private _kernelId = '';
  /** how many deaths the person has read of */
  private readonly deaf: () => void;
  private read = 0;
}
