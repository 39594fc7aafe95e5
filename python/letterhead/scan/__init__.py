"""Find out which headers messages contain: counts for each key, and suggested types with evidence.

Examples
--------
>>> import pyarrow as pa
>>> import letterhead as lh
>>> from letterhead import arrow as lha
>>> messages = pa.array([lh.encode([("amount", n.to_bytes(8, "big"))], "kafka") for n in range(12, 900, 7)])
>>> for guess in lha.scan(messages, "kafka")["amount"].guesses[:2]:
...     print(guess.type, guess.confidence, guess.evidence.replace("; ", "\\n  "), sep=" | ")
int64 | strong | all 127 values are 8 bytes
  as int64 12 to 894
  as float64 all 127 are subnormal, NaN, or beyond 1e±30
  as int64:le -9,078,693,898,825,498,624 to 9,151,595,917,793,558,528
float64:le | unlikely | all 127 values are 8 bytes
  as float64:le 114 of 127 are subnormal, NaN, or beyond 1e±30
"""

from letterhead._optional_dependencies import install_hint

with install_hint("a scan", "letterhead[arrow]"):
    import numpy  # noqa: F401
    import pyarrow  # noqa: F401

from letterhead.scan.guesses import Guess
from letterhead.scan.key import KeyScan
from letterhead.scan.report import Scan

__all__ = ["Guess", "KeyScan", "Scan"]


def __dir__() -> list[str]:
    return __all__
