"""The way into running tasks by SSH, on the server's side."""
