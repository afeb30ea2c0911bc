// The status-bar item: what this notebook server uses, and how long it may still run.

import { ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { OnSignal, Polled } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { ILimits, IUse } from './use';
import { SessionModel } from './model';
import { explanation, leftText, describeUse } from './words';

/** Shows what is known; nothing where nothing is. `session` null: nobody watches over this server. */
export class SessionStatus extends ReactWidget {
  constructor(
    private readonly use: Polled<IUse>,
    private readonly session: SessionModel | null,
    private readonly limits: ILimits,
    private readonly trans: ITranslation
  ) {
    super();
    this.addClass('pai-SessionStatus');
    session?.changed.connect(() => this.update());
  }

  protected render(): React.ReactElement {
    return <OnSignal signal={this.use.changed}>{() => this.item()}</OnSignal>;
  }

  private item(): React.ReactElement {
    const { trans, limits } = this;
    const use = this.use.error ? null : this.use.answer;
    const session = this.session?.error ? null : (this.session?.session ?? null);
    const left = session ? this.session!.left : null;
    const used = describeUse(use, limits, trans);
    const ends = leftText(left, trans);
    return (
      <span
        className={session?.warned ? 'pai-SessionStatus-text pai-mod-warned' : 'pai-SessionStatus-text'}
        title={used || ends ? explanation(use, limits, session, left, trans) : ''}
      >
        <span className="pai-SessionStatus-use">{used}</span>
        <span className="pai-SessionStatus-left">{used && ends ? ` · ${ends}` : ends}</span>
      </span>
    );
  }
}
