"""The store: jobs, attempts, tasks and job events in SQL, and all that must survive."""
