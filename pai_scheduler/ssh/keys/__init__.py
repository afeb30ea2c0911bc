"""Keys, login names and session tokens of the SSH gateway, and the files a task needs to be logged into."""
