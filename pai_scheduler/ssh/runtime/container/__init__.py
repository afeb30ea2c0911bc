"""The SSH runtime of tasks in containers: OpenSSH and small tools in a folder that fits any image."""
