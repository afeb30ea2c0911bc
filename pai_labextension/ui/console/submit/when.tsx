// The fields that say whether a file runs now, or again and again.

import * as React from 'react';

import { cronOf, dayName, IRhythm, IRunSchedule, Kind, KINDS, NIGHTLY, ownZone, rhythmOf } from '../data/rhythm';
import { useHost } from '../host';
import { CheckField, ChoiceField, Field, TextField } from '../kit/field';

interface IProps {
  schedule: IRunSchedule | undefined;
  onChange: (schedule: IRunSchedule | undefined) => void;
}

export function WhenFields({ schedule, onChange }: IProps): React.ReactElement {
  const { trans } = useHost();
  const first = () => ({ cron: cronOf(NIGHTLY), timeZone: ownZone(), overlap: 'skip' as const });
  return (
    <fieldset className="pai-Run-when">
      <legend>{trans.__('When')}</legend>
      {[false, true].map(repeatedly => (
        <label key={String(repeatedly)} className="pai-Run-choice">
          <input
            type="radio"
            name="pai-when"
            checked={(schedule !== undefined) === repeatedly}
            onChange={() => onChange(repeatedly ? first() : undefined)}
          />
          {repeatedly ? trans.__('Again and again') : trans.__('Now, once')}
        </label>
      ))}
      {schedule && <RhythmFields schedule={schedule} onChange={onChange} />}
    </fieldset>
  );
}

function RhythmFields(props: IProps & { schedule: IRunSchedule }): React.ReactElement {
  const { schedule, onChange } = props;
  const { language, trans } = useHost();
  const [rhythm, setRhythm] = React.useState<IRhythm>(() => rhythmOf(schedule.cron));
  const change = (changes: Partial<IRhythm>) => {
    const changed = { ...rhythm, ...changes };
    setRhythm(changed);
    onChange({ ...schedule, cron: cronOf(changed) });
  };
  const kinds: Record<Kind, string> = {
    daily: trans.__('Every day'),
    weekdays: trans.__('On week days'),
    weekly: trans.__('Every week'),
    hourly: trans.__('Every hour'),
    cron: trans.__('As a cron expression says')
  };
  const { kind, time } = rhythm;
  return (
    <>
      <div className="pai-Run-fields">
        <ChoiceField
          label={trans.__('How often')}
          value={kind}
          choices={KINDS.map(each => [each, kinds[each]])}
          // an expression of one's own begins with what was chosen before
          onChange={chosen => change({ kind: chosen as Kind, expression: cronOf(rhythm) })}
        />
        {kind === 'weekly' && (
          <ChoiceField
            label={trans.__('Day of the week')}
            value={String(rhythm.day)}
            choices={[1, 2, 3, 4, 5, 6, 0].map(day => [String(day), dayName(day, language)])}
            onChange={day => change({ day: Number(day) })}
          />
        )}
        {kind === 'hourly' && (
          <ChoiceField
            label={trans.__('Minute')}
            value={String(Number(time.slice(3)))}
            choices={[...Array(60).keys()].map(minute => [String(minute), String(minute).padStart(2, '0')])}
            onChange={minute => change({ time: `00:${minute.padStart(2, '0')}` })}
          />
        )}
        {kind === 'cron' ? (
          <TextField
            label={trans.__('Minute, hour, day of the month, month, day of the week')}
            value={rhythm.expression}
            onChange={expression => change({ expression })}
          />
        ) : (
          kind !== 'hourly' && (
            <Field label={trans.__('Time')}>
              {input => (
                <input
                  {...input}
                  type="time"
                  required
                  value={time}
                  // while it is typed there is none
                  onChange={event => event.target.value && change({ time: event.target.value })}
                />
              )}
            </Field>
          )
        )}
        <TextField
          label={trans.__('Time zone')}
          value={schedule.timeZone}
          suggestions={Intl.supportedValuesOf('timeZone')}
          onChange={timeZone => onChange({ ...schedule, timeZone })}
        />
      </div>
      <CheckField
        label={trans.__('Start also while the run before has not ended')}
        checked={schedule.overlap === 'allow'}
        onChange={allowed => onChange({ ...schedule, overlap: allowed ? 'allow' : 'skip' })}
      />
      <p className="pai-mod-secondary">
        {trans.__(
          'The file is uploaded now, as it is, with those that go along: that is what runs each time. What you change later does not.'
        )}
      </p>
    </>
  );
}
