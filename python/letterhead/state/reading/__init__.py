"""Read state directories as Arrow streams: :func:`letterhead.read.state`."""
