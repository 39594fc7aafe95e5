"""The sources that commands read; :mod:`letterhead.cli.sources.opening` opens them."""
