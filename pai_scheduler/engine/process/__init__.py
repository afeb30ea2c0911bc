"""The embedded engine: tasks are processes of this machine, each under a supervisor of its own."""
