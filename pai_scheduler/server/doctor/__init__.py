"""Finds out what keeps machines, or the network between them, from running tasks (`pai-scheduler doctor`)."""
