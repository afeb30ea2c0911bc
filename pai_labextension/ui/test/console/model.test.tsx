import * as React from 'react';
import { createRoot } from 'react-dom/client';
import { afterEach, describe, expect, it } from 'vitest';

import { IShownModel, Signal, useModel } from '../../console/data/store';
import { ShownProvider } from '../../console/host';

const root = createRoot(document.createElement('div'));
const changed = new Signal();
const told: boolean[] = [];
const model: IShownModel = { changed, setShown: shown => told.push(shown) };
let drawn = 0;

function Shows(): null {
  useModel(model);
  React.useEffect(() => {
    drawn += 1;
  });
  return null;
}

/** Draw it in view, out of view, or (`null`) not at all. */
async function draw(isShown: boolean | null): Promise<void> {
  root.render(
    isShown === null ? null : (
      <ShownProvider value={isShown}>
        <Shows />
      </ShownProvider>
    )
  );
  await settled();
}

function settled(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, 20));
}

describe('a model that is shown', () => {
  afterEach(async () => {
    await draw(null);
    told.length = 0;
  });

  it('is told when it comes into view and when it goes', async () => {
    await draw(false);
    expect(told).toEqual([]);
    await draw(true);
    await draw(true);
    await draw(false);
    expect(told).toEqual([true, false]);
  });

  it('is told that it goes with what shows it', async () => {
    await draw(true);
    await draw(null);
    expect(told).toEqual([true, false]);
  });

  it('is drawn anew when it changes', async () => {
    await draw(true);
    const before = drawn;
    changed.emit();
    await settled();
    expect(drawn).toBe(before + 1);
  });
});
