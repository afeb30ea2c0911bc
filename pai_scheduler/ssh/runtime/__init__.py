"""What serves SSH inside a task: a program for processes, a volume for containers."""
