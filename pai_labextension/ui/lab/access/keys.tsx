// The public keys that a person has registered: seen, added and removed.

import { Dialog, showDialog } from '@jupyterlab/apputils';
import * as React from 'react';

import { IPublicKey } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { PageError } from '../../console/kit/status';
import { LocalTime } from '../../console/kit/time';
import { ConnectModel } from './connectModel';

interface IKeysProps {
  readonly model: ConnectModel;
  readonly trans: ITranslation;
  /** Of dates, as browsers name it. */
  readonly language: string;
}

/** Lists the keys of the task's owner. */
export function KeysGuide({ model, trans, language }: IKeysProps): React.ReactElement {
  const [typed, setTyped] = React.useState('');
  const [busy, setBusy] = React.useState(false);
  React.useEffect(() => void model.refreshKeys(), [model]);
  const add = async (event: React.FormEvent) => {
    event.preventDefault();
    setBusy(true);
    if (await model.addKey(typed.trim())) {
      setTyped('');
    }
    setBusy(false);
  };
  return (
    <>
      <p>
        {trans.__('With a key that you register here, ssh opens all your tasks, now and later, without a download.')}
      </p>
      <PageError text={model.keysError} />
      {model.keys === null ? (
        !model.keysError && <p role="status">{trans.__('Asking for your keys …')}</p>
      ) : model.keys.length === 0 ? (
        <p role="status">{trans.__('You have registered no key yet.')}</p>
      ) : (
        <table className="pai-Values">
          <caption>{trans.__('Registered keys')}</caption>
          <tbody>
            {model.keys.map(key => (
              <tr key={key.fingerprint}>
                <th scope="row">{key.comment || key.type}</th>
                <td>
                  {key.fingerprint}
                  <span className="pai-mod-secondary">
                    {key.type} · <LocalTime time={new Date(key.addedTime)} language={language} form="day" />
                  </span>
                </td>
                <td>
                  <TextButton
                    small
                    aria-label={trans.__('Remove “%1”', key.comment || key.fingerprint)}
                    onClick={() => void remove(key, model, trans)}
                  >
                    {trans.__('Remove')}
                  </TextButton>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <form className="pai-Keys-add" onSubmit={event => void add(event)}>
        <label>
          {trans.__('Public key (the line in ~/.ssh/id_ed25519.pub)')}
          <textarea
            className="pai-Input"
            rows={3}
            spellCheck={false}
            placeholder="ssh-ed25519 AAAA… me@laptop"
            value={typed}
            onChange={event => setTyped(event.target.value)}
          />
        </label>
        <TextButton type="submit" accept disabled={busy || typed.trim() === ''}>
          {trans.__('Register')}
        </TextButton>
      </form>
    </>
  );
}

async function remove(key: IPublicKey, model: ConnectModel, trans: ITranslation): Promise<void> {
  const answer = await showDialog({
    title: trans.__('Remove this key?'),
    body: trans.__('“%1” opens no task any more. What is open stays open.', key.comment || key.fingerprint),
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Remove') })]
  });
  if (answer.button.accept) {
    await model.removeKey(key);
  }
}
