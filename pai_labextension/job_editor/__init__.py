"""Data of JupyterLab's job editor: the job schema in words, templates, images."""
