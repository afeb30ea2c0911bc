"""Where users' files live, reached by URIs: who may read what is decided here."""
