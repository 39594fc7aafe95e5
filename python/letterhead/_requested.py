"""Cast what leaves as Arrow to a type that its consumer requests. pyarrow casts, the core does not.

Without pyarrow a request is ignored, as the interface permits: the consumer gets the type of the column.
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

    Chunks are taken one by one here: pyarrow would release the GIL under the core, which called this, and read its stream.
    """
    try:
        import pyarrow as pa
    except ImportError:
        return None
    of = pa.DataType._import_from_c_capsule(schema)
    cast = (pa.array(chunk).cast(of) for chunk in chunks)
    if pa.types.is_struct(of):
        batches = (pa.RecordBatch.from_struct_array(chunk) for chunk in cast)
        made: Any = pa.RecordBatchReader.from_batches(pa.schema(list(of)), batches)
    else:
        made = pa.chunked_array(list(cast), of)
    capsule: object = made.__arrow_c_stream__()
    return capsule
