"""Shared code of the readers of Kafka and Iggy, for topics on servers and for segment files.

:mod:`~letterhead.offsets.specs` parses the start and end of reading, :mod:`~letterhead.offsets.ranges` chooses ranges
of offsets, :mod:`~letterhead.offsets.reading` reads ranges from servers, and :mod:`~letterhead.offsets.rows` converts
batches to Arrow. Each system implements :class:`~letterhead.offsets.partition_log.PartitionLog` and
:class:`~letterhead.offsets.rows.RowReader`.
"""
