"""Telling people and programs outside that a job has ended: webhooks and mail."""
