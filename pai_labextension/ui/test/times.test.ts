// Times are those of the person in front of the browser, whatever the kernel's clock says.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { agoText, inFull, localText } from '../console/kit/time';
import { watchTimes, writeLocally } from '../lab/times';

const TIME = new Date(1_700_000_000_000);

describe('times', () => {
  const before = process.env.TZ;
  beforeAll(() => {
    process.env.TZ = 'Asia/Tokyo';
  });
  afterAll(() => {
    process.env.TZ = before;
  });

  it('are local, and say their zone in full', () => {
    expect(localText(TIME, 'en', 'minutes')).toMatch(/^Nov 15, 2023, 7:13\sAM$/);
    expect(inFull(TIME, 'en')).toContain('Japan');
    expect(localText(TIME, 'zh-CN', 'seconds')).toContain('07:13:20');
  });

  it('are so long ago, in the largest unit of which there is one', () => {
    const ago = (seconds: number, language = 'en') => agoText(TIME, TIME.getTime() + 1000 * seconds, language);
    expect([ago(-5), ago(59), ago(3599), ago(3600), ago(47 * 3600)]).toEqual([
      'this minute',
      'this minute',
      '59 min. ago',
      '1 hr. ago',
      'yesterday'
    ]);
    expect(ago(7200, 'zh-CN')).toBe('2小时前');
  });

  it('go with the person to another zone', () => {
    expect(localText(TIME, 'en', 'clock')).toMatch(/^7:13:20\sAM$/);
    process.env.TZ = 'Europe/Paris';
    expect(localText(TIME, 'en', 'clock')).toMatch(/^11:13:20\sPM$/);
    process.env.TZ = 'Asia/Tokyo';
    expect(localText(TIME, 'en', 'clock')).toMatch(/^7:13:20\sAM$/);
  });

  it('of a widget are written anew, whatever the kernel wrote', () => {
    const cell = document.createElement('div');
    cell.innerHTML =
      '<time data-pai-time="1700000000000">2023-11-14 22:13:20 UTC</time>' +
      '<svg><text data-pai-time="1700000000000" data-pai-form="clock">22:13:20</text></svg>' +
      '<time data-pai-time="no number">as it was</time>';
    writeLocally(cell, 'en');
    const [time, strange] = cell.querySelectorAll('time');
    expect(time!.textContent).toMatch(/^Nov 15, 2023, 7:13:20\sAM$/);
    expect(time!.title).toContain('Japan');
    expect(cell.querySelector('text')!.textContent).toMatch(/^7:13:20\sAM$/);
    expect(strange!.textContent).toBe('as it was');
  });

  it('that a widget shows later are too', async () => {
    const root = document.createElement('div');
    const observer = watchTimes(root, 'en');
    const widget = document.createElement('p');
    widget.innerHTML = 'Submitted: <time data-pai-time="1700000000000">22:13</time>';
    root.append(widget);
    await new Promise(done => setTimeout(done));
    expect(widget.textContent).toContain('Nov 15, 2023');
    observer.disconnect();
  });
});
