import { MimeData } from '@lumino/coreutils';
import type { Drag } from '@lumino/dragdrop';
import { describe, expect, it } from 'vitest';

import { draggedFile } from '../../lab/editorText';

function drag(kind: string, data: unknown): Drag.Event {
  const mimeData = new MimeData();
  mimeData.setData(kind, data);
  return { mimeData } as Drag.Event;
}

describe('what is dragged over the editor', () => {
  it('is taken where it is one file that can be a job', () => {
    const files = (...paths: string[]) => draggedFile(drag('application/x-jupyter-icontents', paths));
    expect(files('jobs/train.pai.json')).toBe('jobs/train.pai.json');
    expect(files('PAI:old.JSONC')).toBe('PAI:old.JSONC');
    expect(files('train.py')).toBeNull();
    expect(files('a.json', 'b.json')).toBeNull();
    expect(draggedFile(drag('application/vnd.lumino.widget-factory', () => null))).toBeNull();
  });
});
