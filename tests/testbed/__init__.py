"""The real parts the tests run against, set up by themselves on a plain Debian machine."""
