"""Notebooks and scripts that run as jobs, from top to bottom, with what is beside them."""
