"""SSH servers inside tasks: a program for processes, a volume for containers."""
