// Texts of JupyterLab's for the job editor: the one that several edit, and a file that is dragged out of its file browser.

import type { ISharedText } from '@jupyter/ydoc';
import type { Drag } from '@lumino/dragdrop';

import { ITextBuffer } from '../console/editor/model';

/** Under what the file browser says which files are dragged; it does not export it. */
const PATHS = 'application/x-jupyter-icontents';

/** JupyterLab's shared text as the console has it. */
export function textBuffer(shared: ISharedText): ITextBuffer {
  return {
    get text() {
      return shared.getSource();
    },
    set: text => shared.setSource(text),
    edit: changes => {
      // from the end, so that what comes before stays where it is
      const ordered = [...changes].sort((one, other) => other.offset - one.offset);
      shared.transact(() => {
        for (const { offset, length, content } of ordered) {
          shared.updateSource(offset, offset + length, content);
        }
      });
    },
    changed: {
      connect: listener => {
        const hear = () => listener();
        shared.changed.connect(hear);
        return () => void shared.changed.disconnect(hear);
      }
    }
  };
}

/** Return the path of the one file that is dragged, if it can be a job; else the drag is not the editor's. */
export function draggedFile(event: Drag.Event): string | null {
  const paths: unknown = event.mimeData.getData(PATHS);
  const [path, other] = Array.isArray(paths) ? (paths as unknown[]) : [];
  return typeof path === 'string' && other === undefined && /\.(jsonc?|txt)$/i.test(path) ? path : null;
}
