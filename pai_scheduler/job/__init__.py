"""A job: its JSON, its tasks' names and environment, its exit codes; pure."""
