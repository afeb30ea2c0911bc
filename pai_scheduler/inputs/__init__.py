"""What a job's tasks get from outside: code and data from the storage, tokens, a registry login."""
