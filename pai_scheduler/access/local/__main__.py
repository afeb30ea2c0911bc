"""`python -m pai_scheduler.access.local <task folder>`."""

from .program import main

main()
