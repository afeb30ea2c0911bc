"""What the API asks for, a module per concern: admission, virtual clusters, job events, health."""
