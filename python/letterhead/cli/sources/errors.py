"""Report errors of opening and reading a source as failures of the command: :func:`reading_errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from letterhead.cli.exits import BAD_DATA, UNREADABLE, Failure, as_options, describe, usage_message
from letterhead.errors import (
    DamagedTableError,
    GroupNotFoundError,
    HeaderError,
    LogTruncated,
    OffsetsGone,
    ProtocolError,
    StateStoreError,
    StoreChoiceError,
    StoreLockedError,
    StoreNotFoundError,
    TopicNotFoundError,
)

__all__ = ["reading_errors"]


@contextmanager
def reading_errors() -> Iterator[None]:
    """Convert errors of opening and reading a source to failures of the command; errors in the data pass through."""
    try:
        yield
    except HeaderError:
        raise
    except (OffsetsGone, LogTruncated, ProtocolError) as error:
        raise Failure(str(error), UNREADABLE) from error
    except StoreLockedError as error:
        raise Failure(f"{error}. Stop that process, or use a command that only reads the store") from error
    except (GroupNotFoundError, StoreNotFoundError, TopicNotFoundError) as error:
        raise Failure(as_options(str(error)), UNREADABLE) from error
    except StoreChoiceError as error:
        raise Failure(as_options(str(error))) from error
    except (StateStoreError, DamagedTableError) as error:
        raise Failure(as_options(str(error)), BAD_DATA) from error
    except OSError as error:
        raise Failure(describe(error), UNREADABLE) from error
    except (ValueError, TypeError, ImportError) as error:
        raise Failure(usage_message(error)) from error
    except (typer.Abort, typer.Exit):
        raise  # both derive from RuntimeError
    except RuntimeError as error:
        raise Failure(str(error), UNREADABLE) from error
