"""What the service and its clients say to each other: the REST API's types, error codes, log positions."""
