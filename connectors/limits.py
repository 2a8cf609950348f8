"""How long one fetch may take and how much it may bring."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one fetch; every value is positive and finite, else ValueError names it.

    ``connect_timeout_seconds`` covers all connection attempts with their TLS handshakes,
    ``read_timeout_seconds`` one wait for bytes, ``fetch_timeout_seconds`` the whole fetch from the DNS query
    to the last byte: no drip of bytes prolongs it. ``max_body_bytes`` bounds the body as sent and, unless
    ``max_decoded_bytes`` says otherwise, as decoded. ``max_header_bytes`` and ``max_headers`` bound status
    lines and header fields, interim (1xx) responses included.
    """

    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 30.0
    fetch_timeout_seconds: float = 120.0
    max_body_bytes: int = 5 * 1024 * 1024
    max_decoded_bytes: int | None = None
    max_header_bytes: int = 64 * 1024
    max_headers: int = 256
    max_interim_responses: int = 8

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{field.name} must be > 0 and finite, got {value}")
