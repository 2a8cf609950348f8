"""Encoded bodies, bombs and damaged ones, that another project's tests hold."""

from __future__ import annotations

import base64
import hashlib

from connectors.encoding import bytes_before_overflow, decode_body

FITS_EVERY_CASE = 16 * 1024 * 1024
CAP = 1024 * 1024


def test_every_body_decodes_to_the_bytes_expected(cases):
    rows = cases("http_content_encoding")
    assert len(rows) >= 6
    for case in rows:
        decoded = decode_body(base64.b64decode(case["raw_b64"]), case["content_encoding"], FITS_EVERY_CASE)
        expected = case["expected"]
        got = {"decoded_len": len(decoded.data), "sha256": hashlib.sha256(decoded.data).hexdigest()}
        assert got == expected, case["id"]
        assert bool(decoded.error) == case["damaged"], (case["id"], decoded.error)
        assert not decoded.truncated


def test_bombs_are_unpacked_to_the_cap_and_no_further(cases):
    bombs = [case for case in cases("http_content_encoding") if case["bomb"]]
    assert bombs
    for case in bombs:
        raw = base64.b64decode(case["raw_b64"])
        decoded = decode_body(raw, case["content_encoding"], CAP)
        assert (len(decoded.data), decoded.truncated, decoded.error) == (CAP, True, None), case["id"]
        assert bytes_before_overflow(raw, case["content_encoding"], CAP) is not None
