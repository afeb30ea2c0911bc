"""The language of service and clients: the REST API's types, error codes, log positions."""
