"""What an administrator edits, and the start-up that `make run` uses."""
