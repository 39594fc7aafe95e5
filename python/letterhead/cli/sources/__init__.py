"""Sources of commands; :mod:`letterhead.cli.sources.opening` opens them."""
