"""Mutation tests of the parts that decide: which faults, put in on purpose, do the tests find."""
