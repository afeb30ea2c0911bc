"""What must survive: jobs, attempts, tasks and job events in SQL."""
