// The job as a form: a view of the one model that the JSON shows too.

import { ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { OnSignal } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { gpuTypes } from './amounts';
import { Environment } from './environment';
import { AfterField, CheckField, ChoiceField, FormContext, NumberField, TextField, useForm } from './fields';
import { JobEditorModel } from './model';
import { Details, Roles } from './roles';
import { uniqueName } from './text';

const STORAGE = ['codeDir', 'dataDir', 'outputDir', 'authFile'];

export class FormView extends ReactWidget {
  constructor(
    private readonly model: JobEditorModel,
    private readonly trans: ITranslation,
    private readonly inputs: string
  ) {
    super();
    this.addClass('pai-JobForm');
  }

  protected render(): React.ReactElement {
    const { model, trans } = this;
    return (
      <OnSignal signal={model.changed}>
        {() => (
          <FormContext.Provider value={{ model, trans, id: this.inputs }}>
            {model.obstacle === null ? <Form /> : <Obstacle reason={model.obstacle} />}
          </FormContext.Provider>
        )}
      </OnSignal>
    );
  }
}

/** Shown in place of the form while the text says nothing that it has fields for. */
function Obstacle({ reason }: { reason: string }): React.ReactElement {
  const { model, trans } = useForm();
  return (
    <div className="pai-JobForm-obstacle" role="alert">
      <p>{trans.__('The form follows as soon as the JSON is right:')}</p>
      <p>{reason}</p>
      {model.textError && (
        <TextButton onClick={() => model.goBack()}>{trans.__('Go back to the text that was right last')}</TextButton>
      )}
    </div>
  );
}

function Form(): React.ReactElement {
  const { model, trans } = useForm();
  const cluster = model.cluster.answer;
  const clusters = cluster?.virtualClusters ?? ['default'];
  const types = gpuTypes(cluster?.nodes ?? []).map(
    ({ type, free, total, simulated }) =>
      [
        type,
        simulated
          ? trans.__('%1: %2 of %3 free (simulated)', type, free, total)
          : trans.__('%1: %2 of %3 free', type, free, total)
      ] as const
  );
  const name = model.value(['jobName']);
  const hasMore = model.mistakes.some(({ path }) => [...STORAGE, 'retryCount', 'extras'].includes(String(path[0])));
  return (
    <form onSubmit={event => event.preventDefault()} aria-label={trans.__('Job')}>
      <TextField
        path={['jobName']}
        required
        hint
        placeholder={trans.__('required')}
        beside={
          <TextButton
            title={trans.__('Append eight random characters to the name')}
            onClick={() => model.edit(['jobName'], uniqueName(typeof name === 'string' ? name : ''))}
          >
            {trans.__('Make unique')}
          </TextButton>
        }
      />
      <TextField
        path={['image']}
        required
        hint
        help={
          model.info.imageNeeded ? undefined : trans.__('Not used here: tasks run as processes of the machine itself.')
        }
        placeholder={trans.__('required, for example: %1', 'python:3.12')}
        suggestions={model.info.images}
      />
      <div className="pai-JobForm-pair">
        <ChoiceField path={['virtualCluster']} choices={clusters.map(one => [one, one])} blank="default" />
        <ChoiceField path={['gpuType']} choices={[['', trans.__('any type')], ...types]} blank="" />
      </div>
      <Roles />
      <Environment />
      <Details
        summary={trans.__(
          'More: storage folders, registry credentials, retries, priority, time limit, time to end, start after jobs'
        )}
        isOpen={hasMore}
      >
        {STORAGE.map(one => (
          <TextField key={one} path={[one]} hint />
        ))}
        <div className="pai-JobForm-pair">
          <NumberField path={['retryCount']} />
          <NumberField
            path={['extras', 'priority']}
            placeholder={trans.__('50 (not given); 0 to 100, higher comes first')}
          />
          <NumberField
            path={['extras', 'maxRunSeconds']}
            placeholder={trans.__('that of the virtual cluster (not given)')}
          />
          <NumberField
            path={['extras', 'terminationGraceSeconds']}
            placeholder={trans.__('that of the cluster, mostly 10 (not given)')}
          />
        </div>
        <AfterField
          path={['extras', 'after']}
          placeholder={trans.__('no other job (not given); for example: %1', 'prepare, fetch:ended')}
        />
        <CheckField
          path={['extras', 'preemptible']}
          whenAbsent
          label={trans.__('May be stopped for others and queued again; only such a job borrows what is idle')}
        />
      </Details>
    </form>
  );
}
