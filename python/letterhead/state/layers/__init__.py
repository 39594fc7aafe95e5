"""Layers around a byte store, such as caching and logging; :class:`~letterhead.state.Stores` combines them."""
