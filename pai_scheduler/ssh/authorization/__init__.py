"""Who may come into which task: authorizes SSH log-ins, finds the task, records who came."""
