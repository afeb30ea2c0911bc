"""Who may come into tasks: logs people in for the SSH gateway, finds the task they mean, tells of it."""
