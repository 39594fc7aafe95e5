"""Layers around a store of bytes; :class:`~letterhead.state.Stores` combines them."""
