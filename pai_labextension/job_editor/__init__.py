"""What the job editor of JupyterLab is made from: the job schema in words, templates, images."""
