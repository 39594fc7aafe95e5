"""Kafka: the client, the topic reader and writer, and the files of a broker's log."""
