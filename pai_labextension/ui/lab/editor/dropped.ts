// A job file that is dragged out of JupyterLab's own file browser: which of its drags are meant for the editor.

import type { Drag } from '@lumino/dragdrop';

/** Under what the file browser says which files are dragged; it does not export it. */
const PATHS = 'application/x-jupyter-icontents';

/** The events of a drag within JupyterLab. */
export const DRAGS = ['lm-dragenter', 'lm-dragover', 'lm-drop'] as const;

/** Return the path of the one file that is dragged, if it can be a job; else the drag is not the editor's. */
export function draggedFile(event: Drag.Event): string | null {
  const paths: unknown = event.mimeData.getData(PATHS);
  const [path, other] = Array.isArray(paths) ? (paths as unknown[]) : [];
  return typeof path === 'string' && other === undefined && /\.(jsonc?|txt)$/i.test(path) ? path : null;
}
