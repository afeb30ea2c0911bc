"""`%load_ext pai_labextension`: `%pai`, the command `pai` in a cell, and `%%pai`, cells that run as jobs."""
