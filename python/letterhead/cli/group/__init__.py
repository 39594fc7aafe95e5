"""`letterhead group`: consumer groups of Kafka."""
