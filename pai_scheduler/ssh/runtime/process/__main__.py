"""`python -m pai_scheduler.ssh.runtime.process <task folder>`."""

from .program import main

main()
