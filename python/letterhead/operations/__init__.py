"""Operations on columns of messages. Each is a frozen dataclass, which checks its arguments.

The functions of :mod:`letterhead.arrow`, the transforms of :mod:`letterhead.spark` and the command line construct the same
objects. They can be pickled and contain no data. :class:`letterhead.conventions.schemas.DecodeBySchema` has the same
methods.
"""

from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.convert import Convert
from letterhead.operations.decode import Decode
from letterhead.operations.edit import Edit, EditReport
from letterhead.operations.encode import Encode
from letterhead.operations.explode_batches import ExplodeBatches
from letterhead.operations.options import ReadOptions, WriteOptions
from letterhead.operations.pack import Pack
from letterhead.operations.select import Select
from letterhead.operations.validate import Validate
from letterhead.operations.where import Where

__all__ = [
    "ColumnOperation", "Convert", "Decode", "Edit", "EditReport", "Encode", "ExplodeBatches", "Pack", "ReadOptions", "Select", "Validate",
    "Where", "WriteOptions",
]  # fmt: skip
