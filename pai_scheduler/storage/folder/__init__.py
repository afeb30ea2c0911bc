"""A folder of this machine as the users' storage."""
