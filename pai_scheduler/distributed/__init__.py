"""Starts programs that run in several tasks at once, from the environment that each task gets."""
