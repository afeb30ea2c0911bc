"""The REST API: thin tornado handlers over the service."""
