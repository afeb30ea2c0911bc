"""The SSH server of a task of the process engine: a small program of its own, started when somebody wants in.

What a task in a container has from its runtime, without a container: its processes are this machine's, with
all that the account may do that the scheduler runs under. Files are not kept from anybody either, as a shell
has them all. What is opened belongs to the task, and ends with it.
"""
