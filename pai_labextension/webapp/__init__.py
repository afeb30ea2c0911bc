"""A web program that opens in this server instead of JupyterLab: started with it, watched, passed on."""
