"""Sources for commands: :mod:`letterhead.cli.sources.opening` opens the sources that arguments name."""
