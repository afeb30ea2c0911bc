"""Python code that runs as a job: what goes there, what it does there, and what comes back."""
