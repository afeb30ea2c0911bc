"""What is inside JupyterLab: server extension, ipywidgets and the front end."""
