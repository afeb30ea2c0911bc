"""Monitoring: metrics of tasks and of the scheduler, and the scheduler's own log."""
