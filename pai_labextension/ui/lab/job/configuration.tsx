// The job as it was submitted, to read and to copy, and the way to its results.

import * as React from 'react';

import { ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { CopyText } from '../../console/kit/copy';
import { PageError } from '../../console/kit/status';
import { resultsPath } from './facts';
import { JobModel } from './model';

export function ConfigurationView(props: {
  model: JobModel;
  trans: ITranslation;
  storageRoot: string;
  onResults: (path: string) => void;
}): React.ReactElement {
  const { model, trans, storageRoot, onResults } = props;
  const [configuration, setConfiguration] = React.useState<Record<string, unknown> | null>(null);
  const [error, setError] = React.useState('');
  React.useEffect(() => {
    let wanted = true;
    model.client.config(model.name).then(
      answer => wanted && setConfiguration(answer),
      (reason: Error) => wanted && setError(reason.message)
    );
    return () => {
      wanted = false;
    };
  }, [model]);
  if (configuration === null) {
    return error ? <PageError text={error} /> : <p role="status">{trans.__('Asking for the job …')}</p>;
  }
  const { username, name } = model.name;
  const path = resultsPath(configuration.outputDir, username, name, storageRoot);
  return (
    <div className="pai-Job-scroll" tabIndex={0} role="region" aria-label={trans.__('Configuration')}>
      {path !== null && (
        <p>
          {trans.__('Results:')}{' '}
          <TextButton small icon="folder" title={trans.__('Show in the storage')} onClick={() => onResults(path)}>
            {path}
          </TextButton>
        </p>
      )}
      <CopyText label={trans.__('Job')} text={JSON.stringify(configuration, null, 2)} trans={trans} />
    </div>
  );
}
