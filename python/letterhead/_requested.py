"""Cast exported Arrow data to the type that a consumer requests, by pyarrow.

Without pyarrow, the request is ignored, as the interface permits: the consumer gets data of the column's type.
"""

from __future__ import annotations

from typing import Any


def array(column: Any, schema: object) -> object | None:
    """Return the capsules of an array of the requested type; None without pyarrow."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    capsules: object = pa.array(column).cast(pa.DataType._import_from_c_capsule(schema)).__arrow_c_array__()
    return capsules


def stream(chunks: Any, schema: object) -> object | None:
    """Return the capsule of a stream of the requested type; None without pyarrow.

    Chunks are passed one by one: given the whole stream, pyarrow would release the GIL while it calls back into the
    core.
    """
    try:
        import pyarrow as pa
    except ImportError:
        return None
    type = pa.DataType._import_from_c_capsule(schema)
    arrays = (pa.array(chunk).cast(type) for chunk in chunks)
    if pa.types.is_struct(type):
        batches = (pa.RecordBatch.from_struct_array(array) for array in arrays)
        result: Any = pa.RecordBatchReader.from_batches(pa.schema(list(type)), batches)
    else:
        result = pa.chunked_array(list(arrays), type)
    capsule: object = result.__arrow_c_stream__()
    return capsule
