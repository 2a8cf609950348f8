"""WARC files, header blocks and index rows that other projects' tests hold."""

from __future__ import annotations

import base64
import io
import json

import pytest

from connectors.cdxj import CdxjRow, format_row, mime_of, parse_row
from connectors.warc_read import http_payload, iter_records, parse_fields, read_payload
from connectors.warc_records import sha1
from crawler.surt import surt_key
from crawler.urls import normalise

HTTP_KINDS = ("response", "revisit")

# The id of each case that differs on purpose; the reasons stand in docs/conformance.md.
KEYS_THAT_DIFFER = {"cx192"}


def sample_files(cases):
    return {case["id"]: base64.b64decode(case["file_b64"]) for case in cases("warc_samples")}


def test_sample_files_give_the_records_expected(cases):
    rows = cases("warc_samples")
    assert len(rows) >= 5
    for case in rows:
        data = base64.b64decode(case["file_b64"])
        records = list(iter_records(io.BytesIO(data)))
        assert len(records) == len(case["expected_records"]), case["id"]
        for record, expected in zip(records, case["expected_records"], strict=True):
            assert facts(record) == {name: expected.get(name) for name in facts(record)}, case["id"]


def facts(record):
    """Return what the case file tells of a record, as we read it."""
    found = {
        "type": record.kind,
        "version": record.head.split(b"\r\n")[0].decode(),
        "uri": record.get("WARC-Target-URI"),
        "date": record.get("WARC-Date"),
        "offset": record.offset,
        "stored_len": record.length,
        "block_content_length": len(record.block),
        "payload_digest": record.get("WARC-Payload-Digest"),
        "refers_to_uri": record.get("WARC-Refers-To-Target-URI"),
        "content_type": record.get("Content-Type"),
    }
    if record.kind == "request":
        del found["content_type"]
    if record.kind in HTTP_KINDS:
        payload = http_payload(record)
        found["http_status"] = str(payload.status)
        found["content_type"] = dict(payload.headers).get("Content-Type")
    return found


def test_payload_digests_of_sample_responses_are_those_of_the_bodies(cases):
    checked = 0
    for name, data in sample_files(cases).items():
        for record in iter_records(io.BytesIO(data)):
            if record.kind == "response":
                payload = read_payload(data[record.offset : record.offset + record.length])
                assert record.get("WARC-Payload-Digest") == f"sha1:{sha1(payload.body)}", (
                    name,
                    record.offset,
                )
                checked += 1
    assert checked


def test_header_blocks_are_read_as_by_the_lenient_policies(cases):
    rows = cases("warc_fields_gowarc")
    assert len(rows) >= 10
    for case in rows:
        fields, faults = parse_fields(base64.b64decode(case["raw_b64"]))
        expected = case["expected"]
        if case["policy"] == "ErrFail":
            assert bool(faults) == expected["error"], case["id"]
        else:
            assert [list(field) for field in fields] == expected["fields"], case["id"]
            assert not expected["error"]
            assert faults or not expected["n_warnings"], case["id"]


def test_index_rows_survive_reading_and_writing(cases):
    rows = cases("cdxj_rows")
    assert len(rows) >= 23
    for case in rows:
        row = CdxjRow(case["key"], case["timestamp"], case["fields"])
        line = f"{row.key} {row.timestamp} {json.dumps(case['fields'])}"
        assert parse_row(line) == row
        assert parse_row(format_row(row)) == row


def test_keys_are_those_of_the_index(cases):
    differing = {
        case["id"] for case in cases("cdxj_rows") if surt_key(normalise(case["url"]).url) != case["key"]
    }
    assert differing == KEYS_THAT_DIFFER


def test_rows_read_back_their_url_from_the_sample_files(cases):
    files = sample_files(cases)
    rows = [case for case in cases("cdxj_rows") if case["fields"]["filename"] in files]
    if not rows:
        pytest.fail("no index row is about a sample file")
    for case in rows:
        fields = case["fields"]
        offset, length = int(fields["offset"]), int(fields["length"])
        payload = read_payload(files[fields["filename"]][offset : offset + length])
        assert payload.warc_headers["WARC-Target-URI"] == fields["url"], case["id"]
        is_revisit = payload.warc_headers["WARC-Type"] == "revisit"
        mime = "warc/revisit" if is_revisit else mime_of(payload.headers)
        assert fields.get("mime", mime) == mime, case["id"]
        digest = payload.warc_headers["WARC-Payload-Digest"].removeprefix("sha1:")
        assert fields.get("digest", digest) == digest, case["id"]
