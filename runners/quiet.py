"""What an engine logs of an exception that is no fault."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unlogged(kind: type[Exception]) -> Iterator[None]:
    """Keep what an engine or a worker logs of this exception out of the log for the length of the block.

    Only where log lines leave this process: the handlers of the root logger.
    """

    def passes(record: logging.LogRecord) -> bool:
        raised = record.exc_info[0] if record.exc_info else None
        is_it = raised is not None and issubclass(raised, kind)
        return not is_it and f".{kind.__name__}: " not in record.getMessage()

    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(passes)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(passes)
