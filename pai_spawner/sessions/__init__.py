"""Sessions of notebook servers: those that are idle or too old end, after a warning; limits hold."""
