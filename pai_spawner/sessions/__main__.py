"""`python -m pai_spawner.sessions`: the program `pai-sessions`."""

from .program import main

raise SystemExit(main())
