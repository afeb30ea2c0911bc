"""The front desk: thin tornado handlers over the service."""
