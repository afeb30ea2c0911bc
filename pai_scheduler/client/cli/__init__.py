"""The `pai` command: jobs from a terminal, made of the same client that everybody else uses."""

from .program import main as main
