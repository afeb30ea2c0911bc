"""Processes that carry the bytes of users' files, so that the scheduler's own loop does not."""
