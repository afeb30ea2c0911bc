// Unit tests: `npm test`. JupyterLab's packages are modules that only a bundler resolves, so they go through Vite.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.{ts,tsx}'],
    environment: 'jsdom',
    // a page that is in view, or polls would rest
    environmentOptions: { jsdom: { pretendToBeVisual: true } },
    server: { deps: { inline: [/@jupyterlab\//, /@jupyter\//, /@lumino\//] } }
  }
});
