// Starts the console in its page.

import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { Catalog, translation } from '../console/host';
import { IPageFacts, webHost, WebTransport } from './host';
import { pages } from './pages';
import { Router } from './router';
import { Shell } from './shell';

/** Where the Hub's pages keep whether somebody has chosen light or dark there (JupyterHub's `darkmode.js`). */
const THEME = 'jupyterhub-bs-theme';

async function start(): Promise<void> {
  document.documentElement.dataset.theme = localStorage.getItem(THEME) ?? '';
  const facts = JSON.parse(document.body.dataset.facts!) as IPageFacts;
  const catalog = facts.translation
    ? ((await (await fetch(`${facts.prefix}static/${facts.translation}`)).json()) as Catalog)
    : {};
  const trans = translation(catalog);
  const router = new Router(facts.prefix, Object.keys(pages));
  const transport = new WebTransport(facts, trans);
  const page = document.createElement('div');
  page.className = 'pai-Web';
  document.body.append(page);
  createRoot(page).render(<Shell host={webHost(transport, trans, facts, router)} {...{ transport, router, facts }} />);
}

void start();
