"""The service: what the API asks for, a module per concern, and the one writer with the launcher."""
