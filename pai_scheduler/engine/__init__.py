"""Engines, which run tasks: one protocol, several engines."""
