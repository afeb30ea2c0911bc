// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';

import { serverOnPage, startAddress } from '../../lab/hub';

const place = { prefix: '/hub/', user: '王 a', server: '' };

function page(html: string): Document {
  return new DOMParser().parseFromString(html, 'text/html');
}

describe('what the Hub’s home says of a server', () => {
  const home = page(`<div id="pai-servers" data-user="王 a">
    <section data-server="big" data-state="running"></section>
    <section data-server="" data-state="ended"><div data-ending="exited">
      <h3 data-part="title"> It ended. </h3><p data-part="reason">Exit code 3</p>
    </div></section></div>`);

  it('is its state, and how it ended', () => {
    expect(serverOnPage(home, place)).toEqual({
      state: 'ended',
      kind: 'exited',
      title: 'It ended.',
      reason: 'Exit code 3',
      advice: ''
    });
    expect(serverOnPage(home, { ...place, server: 'big' })).toMatchObject({ state: 'running', kind: '' });
  });

  it('is nothing where the page is another one', () => {
    expect(serverOnPage(home, { ...place, server: 'other' })).toBeNull();
    expect(serverOnPage(home, { ...place, user: 'bob' })).toBeNull();
    expect(serverOnPage(page('<h1>Sign in</h1>'), place)).toBeNull();
  });

  it('leads to the page that starts it', () => {
    expect(startAddress(place, 'spawn')).toBe('/hub/spawn/%E7%8E%8B%20a');
    expect(startAddress({ ...place, server: 'big' }, 'spawn-pending')).toBe('/hub/spawn-pending/%E7%8E%8B%20a/big');
  });
});
