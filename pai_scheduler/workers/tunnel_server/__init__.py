"""Processes that carry the bytes between this machine and other nodes, not the scheduler's own loop."""
