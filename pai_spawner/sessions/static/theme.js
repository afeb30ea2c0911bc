// Light or dark as it was chosen on the Hub's pages, where these are on the same host; else as the system has it.

try {
  const chosen = localStorage.getItem('jupyterhub-bs-theme');
  if (chosen === 'light' || chosen === 'dark') {
    document.documentElement.dataset.theme = chosen;
  }
} catch {
  // a browser that keeps nothing
}
