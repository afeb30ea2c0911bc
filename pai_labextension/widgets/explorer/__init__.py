"""The cluster's files in a notebook: a small list, to choose one for a job, or to copy."""
