"""Which addresses are this machine, as far as the text tells: no name is looked up."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit


def host_in(address: str) -> str:
    """Return the host of HOST:PORT or of a URL, in lower case, brackets of IPv6 removed."""
    text = address if "://" in address else f"//{address}"
    return (urlsplit(text).hostname or "").lower()


def is_this_machine(address: str) -> bool:
    """Return whether HOST:PORT, or a URL, names loopback or this machine's own name."""
    host = host_in(address)
    own = {"localhost", "::1", "0.0.0.0", socket.gethostname().lower()}
    return host in own or host.startswith("127.") or host.endswith(".localhost")
