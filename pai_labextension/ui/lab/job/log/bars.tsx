// Ways through a log: search it, jump to its beginning, its end, a part of it or a time.

import * as React from 'react';

import { ITranslation } from '../../../console/host';
import { IconButton, TextButton } from '../../../console/kit/button';
import { LogModel } from './model';

/** Steps of the slider. */
const STEPS = 1000;

interface IBarProps {
  model: LogModel;
  trans: ITranslation;
}

/** Searches the whole log, not only what is in the browser. */
export function SearchBar(
  props: IBarProps & { query: string; onQuery: (query: string) => void; firstInView: () => number }
): React.ReactElement {
  const { model, trans, query, onQuery, firstInView } = props;
  const { search } = model;
  const isRunning = typeof search === 'object' && search !== null;
  const find = (backwards: boolean) => {
    if (query) {
      void model.find(query, backwards, firstInView());
    }
  };
  return (
    <div role="search" className="pai-Log-search">
      <input
        type="search"
        className="pai-Input"
        aria-label={trans.__('Search the whole log')}
        placeholder={trans.__('Search the whole log')}
        value={query}
        onChange={event => onQuery(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            find(event.shiftKey);
          } else if (event.key === 'Escape') {
            model.cancelSearch();
          }
        }}
      />
      <IconButton icon="previous" label={trans.__('Previous match')} disabled={!query} onClick={() => find(true)} />
      <IconButton icon="next" label={trans.__('Next match')} disabled={!query} onClick={() => find(false)} />
      <span role="status">
        {search === 'nothing' && trans.__('No more matches in this direction.')}
        {isRunning && trans.__('Searched %1 %', Math.round(search.done * 100))}
      </span>
      {isRunning && (
        <TextButton small onClick={() => model.cancelSearch()}>
          {trans.__('Cancel')}
        </TextButton>
      )}
    </div>
  );
}

/** Jumps within the log. */
export function JumpBar({ model, trans }: IBarProps): React.ReactElement {
  const [time, setTime] = React.useState('');
  const { top, size } = model.place;
  const place = model.following || size === 0 ? STEPS : Math.round((top / size) * STEPS);
  const [dragged, setDragged] = React.useState<number | null>(null);
  const jump = () => {
    const wanted = new Date(time).getTime();
    if (!isNaN(wanted)) {
      void model.toTime(wanted);
    }
  };
  const drop = () => {
    if (dragged !== null) {
      void (dragged === STEPS ? model.toEnd() : model.toPart(dragged / STEPS));
      setDragged(null);
    }
  };
  return (
    <div className="pai-Log-jump" role="group" aria-label={trans.__('Jump')}>
      <TextButton small onClick={() => void model.toStart()}>
        {trans.__('Start')}
      </TextButton>
      {model.choice.tasks.length === 1 && (
        <input
          type="range"
          min={0}
          max={STEPS}
          value={dragged ?? place}
          aria-label={trans.__('Place in the log')}
          aria-valuetext={trans.__('%1 %', Math.round((dragged ?? place) / 10))}
          onChange={event => setDragged(Number(event.target.value))}
          onPointerUp={drop}
          onKeyUp={drop}
          onBlur={drop}
        />
      )}
      <TextButton small onClick={() => void model.toEnd()}>
        {trans.__('End')}
      </TextButton>
      <input
        type="datetime-local"
        step={1}
        className="pai-Input"
        aria-label={trans.__('Time to jump to')}
        value={time}
        onChange={event => setTime(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            jump();
          }
        }}
      />
      <TextButton small disabled={!time} onClick={jump}>
        {trans.__('Go to this time')}
      </TextButton>
    </div>
  );
}
