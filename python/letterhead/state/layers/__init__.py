"""The layers that stand around a store of bytes; :class:`~letterhead.state.Stores` puts them together."""
