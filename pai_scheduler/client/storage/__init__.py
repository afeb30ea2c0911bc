"""The cluster's files for everybody outside the scheduler: a client, transfers, submit with code."""
