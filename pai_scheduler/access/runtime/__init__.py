"""What tasks in containers are logged into with: OpenSSH and small tools in one folder that fits any image."""
