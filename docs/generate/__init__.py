"""Makes the pages that say what the schema, the tables and the parsers say: `make docs`."""
