"""Who somebody is and what they may ask for, how often one may guess wrong, and secrets in files."""
