"""Logs into tasks through the SSH gateway, for the command line and for JupyterLab; knows no scheduler."""
