"""Partitions of offsets: what the readers of Kafka, Iggy and their files have in common."""
