// PAI's own signs: of its jobs, of its storage, and for uploading a folder.

import { LabIcon } from '@jupyterlab/ui-components';

/** In the launcher, the palette, tabs and the status bar: tasks of a gang, started together. */
export const paiIcon = new LabIcon({
  name: 'pai-labextension:pai',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <rect x="3" y="3" width="7" height="7" rx="1.5"/>
    <rect x="14" y="3" width="7" height="7" rx="1.5"/>
    <rect x="3" y="14" width="7" height="7" rx="1.5"/>
    <path d="M15.2 13.7a.8.8 0 0 1 1.2-.7l5 3.8a.9.9 0 0 1 0 1.4l-5 3.8a.8.8 0 0 1-1.2-.7z"/>
  </g>
</svg>`
});

/** In the tab of a job that is being written: the sign of jobs, with a pencil. */
export const editJobIcon = new LabIcon({
  name: 'pai-labextension:edit-job',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <rect x="3" y="3" width="7" height="7" rx="1.5"/>
    <rect x="14" y="3" width="7" height="7" rx="1.5"/>
    <rect x="3" y="14" width="7" height="7" rx="1.5"/>
    <path d="M12.5 19.2v2.3h2.3l5-5-2.3-2.3zm9-4.4a.8.8 0 0 0 0-1.1l-1.2-1.2a.8.8 0 0 0-1.1 0l-1 1 2.3 2.3z"/>
  </g>
</svg>`
});

/** In the side bar: disks upon each other. */
export const storageIcon = new LabIcon({
  name: 'pai-labextension:storage',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M12 2c4.6 0 8 1.5 8 3.5S16.6 9 12 9 4 7.5 4 5.5 7.4 2 12 2z"/>
    <path d="M4 8.3c1.700 1.3 4.700 2 8 2s6.3-.7 8-2v3.4c0 2-3.4 3.5-8 3.5s-8-1.5-8-3.5z"/>
    <path d="M4 14.5c1.700 1.3 4.700 2 8 2s6.3-.7 8-2v4c0 2-3.4 3.5-8 3.5s-8-1.5-8-3.5z"/>
  </g>
</svg>`
});

/** On a button: a folder with an arrow upwards. */
export const uploadFolderIcon = new LabIcon({
  name: 'pai-labextension:upload-folder',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <path class="jp-icon3" fill="#616161" d="M20 6h-8l-2-2H4a2 2 0 0 0-2 2v12a2 2 0 0 0 2 2h16a2 2 0 0 0 2-2V8a2 2 0 0 0-2-2zm0 12H4V6h5.2l2 2H20zm-9-1h2v-4h2.5L12 9.5 8.5 13H11z"/>
</svg>`
});
