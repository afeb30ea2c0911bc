"""How a task runs: one protocol, several engines."""
