"""Processes of our own that serve connections which the scheduler passes on to them."""
