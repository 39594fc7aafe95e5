"""Values of conventions that are more than one type says; :mod:`letterhead.arrow` has the functions."""
