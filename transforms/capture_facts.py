"""What the metadata record of a capture says: facts about it that are no part of the exchange."""

from __future__ import annotations

from connectors.encoding import decode_body
from connectors.warc_records import content_encoding
from crawler.charset import decide
from crawler.outlinks import count_outlinks
from crawler.sniff import HTML, XHTML, sniff
from schemas.fetch import Capture


def metadata_of(capture: Capture, via: str | None, max_body_bytes: int) -> dict[str, str]:
    """Return the fields of the metadata record, by name.

    ``fetchTimeMs`` is the whole exchange; ``via`` the page or redirect that led to the URL. A body that shows
    itself to be text also has ``charset-detected``, one that is HTML ``outlinks``, the number of its links as
    written (`crawler.outlinks`). At most ``max_body_bytes`` of the decoded body are looked at.
    """
    fields = {"fetchTimeMs": str(round((capture.finished_at - capture.started_at) * 1000))}
    if via:
        fields["via"] = via
    body = decode_body(capture.body, content_encoding(capture), max_body_bytes).data
    identified = sniff(body)
    if identified is None or not (identified.startswith("text/") or identified == XHTML):
        return fields
    types = (value for name, value in capture.response_headers if name.lower() == "content-type")
    fields["charset-detected"] = decide(body, next(types, None)).name
    if identified in (HTML, XHTML):
        fields["outlinks"] = str(count_outlinks(body, fields["charset-detected"]))
    return fields
