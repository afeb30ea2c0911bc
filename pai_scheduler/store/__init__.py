"""What must survive: jobs, attempts, tasks and their story in SQL."""
