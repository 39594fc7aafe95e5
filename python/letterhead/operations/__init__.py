"""Operations on columns of messages, which check their arguments in the constructor.

The functions of :mod:`letterhead.arrow`, the transforms of :mod:`letterhead.spark` and the command line construct the same
objects. They can be pickled and contain no data. Most are classes of the core; :class:`Edit` and :class:`Pack` also call
pyarrow. :class:`letterhead.conventions.schemas.DecodeBySchema` has the same methods.
"""

from letterhead._native import (
    ColumnOperation,
    Convert,
    Decode,
    DecodeOptions,
    Encode,
    ExplodeBatches,
    Select,
    Validate,
    Where,
    WriteOptions,
)
from letterhead.operations.edit import Edit, EditReport
from letterhead.operations.pack import Pack

__all__ = [
    "ColumnOperation", "Convert", "Decode", "Edit", "EditReport", "Encode", "ExplodeBatches", "Pack", "DecodeOptions", "Select", "Validate",
    "Where", "WriteOptions",
]  # fmt: skip
