"""Finds out what keeps the Hub from serving its users (`pai-hub doctor`)."""
