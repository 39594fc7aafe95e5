"""Exact copies of topics and logs, which continue where they stopped."""
