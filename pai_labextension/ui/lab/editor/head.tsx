// Above form and JSON: templates and files to begin with, where it is saved, and in a narrow window which of the two is shown.

import { ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { ISignal, OnSignal } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { JobTemplate } from '../../console/generated/types.gen';
import { TextButton } from '../../console/kit/button';

export type Side = 'form' | 'json';

/** What the head shows. */
export interface IHeadState {
  /** What was taken last, and can be undone; empty: nothing. */
  readonly notice: string;
  readonly canUndo: boolean;
  /** The side that is shown where there is no room for both; `null`: there is. */
  readonly side: Side | null;
  readonly isUntouched: boolean;
}

export interface IHeadActions {
  readonly take: (template: JobTemplate) => void;
  readonly importFile: (file: File) => void;
  readonly undo: () => void;
  readonly show: (side: Side) => void;
  /** `null`: JupyterLab saves it itself. */
  readonly save: (() => void) | null;
}

interface IHeadProps {
  readonly templates: readonly JobTemplate[];
  readonly trans: ITranslation;
  readonly actions: IHeadActions;
  /** Begins the ids of the two sides. */
  readonly id: string;
}

export class Head extends ReactWidget {
  constructor(
    private readonly props: IHeadProps,
    private readonly state: () => IHeadState,
    private readonly changed: ISignal
  ) {
    super();
    this.addClass('pai-JobHead');
  }

  protected render(): React.ReactElement {
    return <OnSignal signal={this.changed}>{() => <HeadView {...this.props} {...this.state()} />}</OnSignal>;
  }
}

function HeadView({
  templates,
  trans,
  actions,
  id,
  notice,
  canUndo,
  side,
  isUntouched
}: IHeadProps & IHeadState): React.ReactElement {
  const file = React.useRef<HTMLInputElement>(null);
  return (
    <>
      <div className="pai-JobHead-line">
        <select
          className="pai-Input"
          aria-label={trans.__('Begin with a template')}
          value=""
          onChange={({ target }) => actions.take(templates.find(({ name }) => name === target.value)!)}
        >
          <option value="" disabled>
            {trans.__('Begin with a template …')}
          </option>
          {templates.map(({ name, title, description }) => (
            <option key={name} value={name} title={description}>
              {title}
            </option>
          ))}
        </select>
        <TextButton icon="upload" title={trans.__('Import a file …')} onClick={() => file.current?.click()}>
          {trans.__('Import a file …')}
        </TextButton>
        <input
          ref={file}
          type="file"
          hidden
          aria-label={trans.__('Choose a job file')}
          accept=".json,.jsonc,.txt"
          onChange={({ target }) => {
            const [chosen] = target.files ?? [];
            if (chosen) {
              actions.importFile(chosen);
            }
            target.value = ''; // the same file can be chosen again
          }}
        />
        {actions.save && (
          <TextButton icon="save" title={trans.__('Save as a file …')} onClick={actions.save}>
            {trans.__('Save as a file …')}
          </TextButton>
        )}
        {side !== null && <Sides side={side} id={id} show={actions.show} trans={trans} />}
      </div>
      {(notice || isUntouched) && (
        <p className="pai-JobHead-notice" role="status">
          {notice ||
            trans.__('Fill in the form, or write JSON beside it; drop or paste a job here, or begin with a template.')}
          {canUndo && (
            <TextButton small onClick={actions.undo}>
              {trans.__('Undo')}
            </TextButton>
          )}
        </p>
      )}
    </>
  );
}

/** The two sides as tabs, where only one has room. */
function Sides({
  side,
  id,
  show,
  trans
}: {
  side: Side;
  id: string;
  show: (side: Side) => void;
  trans: ITranslation;
}): React.ReactElement {
  const names = { form: trans.__('Form'), json: trans.__('JSON') };
  const other = side === 'form' ? 'json' : 'form';
  return (
    <div className="pai-JobHead-sides" role="tablist" aria-label={trans.__('Form or JSON')}>
      {(['form', 'json'] as const).map(one => (
        <button
          key={one}
          type="button"
          role="tab"
          id={`${id}-${one}-tab`}
          aria-selected={one === side}
          aria-controls={`${id}-${one}`}
          tabIndex={one === side ? 0 : -1}
          onClick={() => show(one)}
          onKeyDown={event => {
            if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
              show(other);
              const place = event.currentTarget[one === 'form' ? 'nextElementSibling' : 'previousElementSibling'];
              (place as HTMLElement | null)?.focus();
            }
          }}
        >
          {names[one]}
        </button>
      ))}
    </div>
  );
}
