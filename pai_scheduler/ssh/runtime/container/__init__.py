"""What tasks in containers are logged into with: OpenSSH and small tools in a folder that fits any image."""
