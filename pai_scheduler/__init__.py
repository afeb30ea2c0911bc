"""The shared scheduler: validates, queues, places and runs every job; one service, one REST API."""
