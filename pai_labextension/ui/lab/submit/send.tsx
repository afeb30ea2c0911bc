// Submits behind a dialog that tells how far the upload is.

import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { IProgress, ISubmitted } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { bytesText } from '../../console/storage/quantities';

/** Submit behind a dialog that tells how far it is; gives why not as a string. */
export async function send(
  submit: (tell: (progress: IProgress) => void, signal: AbortSignal) => Promise<ISubmitted>,
  trans: ITranslation
): Promise<ISubmitted | null | string> {
  const controller = new AbortController();
  const view = new ProgressView(trans);
  const dialog = new Dialog({
    title: trans.__('Submitting …'),
    body: view,
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') })]
  });
  const closed = dialog.launch().then(() => controller.abort());
  try {
    return await submit(progress => view.tell(progress), controller.signal);
  } catch (error) {
    return controller.signal.aborted ? null : (error as Error).message;
  } finally {
    dialog.dispose();
    void closed.catch(() => undefined);
  }
}

class ProgressView extends ReactWidget {
  constructor(private readonly trans: ITranslation) {
    super();
    this.addClass('pai-Code');
  }

  tell(progress: IProgress): void {
    this.progress = progress;
    this.update();
  }

  protected render(): React.ReactElement {
    const { progress, trans } = this;
    if (progress === null) {
      return <progress aria-label={trans.__('Upload of the code')} />;
    }
    const { files, filesTotal, bytes, bytesTotal } = progress;
    return (
      <>
        <progress aria-label={trans.__('Upload of the code')} value={bytesTotal ? bytes : 1} max={bytesTotal || 1} />
        <p role="status">{trans.__('Files: %1 of %2, %3', files, filesTotal, bytesText(bytes))}</p>
      </>
    );
  }

  private progress: IProgress | null = null;
}
