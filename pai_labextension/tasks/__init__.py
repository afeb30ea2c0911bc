"""Terminals in running tasks, their ports, and what *Connect* shows of them."""
