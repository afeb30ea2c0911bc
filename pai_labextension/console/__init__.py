"""The console on the web: a managed service of the Hub with pages for all its users."""
