"""The images that notebook servers run in, and what builds them."""
