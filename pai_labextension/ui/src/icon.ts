// PAI's sign in the launcher, the palette, tabs and the status bar: tasks of a gang, started together.

import { LabIcon } from '@jupyterlab/ui-components';

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
