"""The Hub's pages: what people see of their servers, and JupyterHub's own words in their language.

A Hub uses them by two lines of `jupyterhub_config.py`:

    from pai_spawner.pages import use_pages
    use_pages(c)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATES = Path(__file__).parent / "templates"


def use_pages(config: Any) -> None:
    """Have JupyterHub find these pages before its own. `config` is the `c` of `jupyterhub_config.py`.

    Pages of your own still come first: `c.JupyterHub.template_paths.insert(0, …)` after this call.
    """
    config.JupyterHub.template_paths.prepend([str(TEMPLATES)])
    options = config.JupyterHub.jinja_environment_options
    options.update({"extensions": ["pai_spawner.pages.extension.HubPages"]})
