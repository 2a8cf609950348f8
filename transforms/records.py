"""Rows of the public tables: captures with Common Crawl's column names, and hosts."""

from __future__ import annotations

from collections.abc import Iterable

from crawler.languages import three_letter_code
from crawler.urls import host_columns, split, surt_key
from schemas.fetch import OutcomeRow
from schemas.round import RoundSpec
from schemas.state import HostState


def capture_record(row: OutcomeRow, next_fetch_at: float | None, spec: RoundSpec) -> dict[str, object]:
    """Return one row of the captures table: what became of a planned URL, a redirect hop or a robots.txt."""
    return {**_url_columns(row.url), **_fetch_columns(row, spec), **_decision_columns(row, next_fetch_at)}


def _url_columns(url: str) -> dict[str, object]:
    parts = split(url)
    host = host_columns(parts.host)
    return {
        "url_surtkey": surt_key(url),
        "url": url,
        "url_host_name": host.name,
        "url_host_tld": host.tld,
        "url_host_2nd_last_part": host.second_last_part,
        "url_host_3rd_last_part": host.third_last_part,
        "url_host_4th_last_part": host.fourth_last_part,
        "url_host_5th_last_part": host.fifth_last_part,
        "url_host_registry_suffix": host.registry_suffix,
        "url_host_registered_domain": host.registered_domain,
        "url_host_private_suffix": host.private_suffix,
        "url_host_private_domain": host.private_domain,
        "url_host_name_reversed": host.name_reversed,
        "url_protocol": parts.scheme,
        "url_port": parts.port if f":{parts.port}/" in url else None,
        "url_path": parts.path,
        "url_query": parts.query,
    }


def _fetch_columns(row: OutcomeRow, spec: RoundSpec) -> dict[str, object]:
    return {
        "fetch_time": row.started_at,
        "fetch_status": row.status,
        "fetch_redirect": row.redirect_url,
        "content_digest": row.payload_digest,
        "content_mime_type": row.content_type.partition(";")[0].strip().lower() if row.content_type else None,
        "content_mime_detected": row.mime_detected,
        "content_charset": row.charset,
        "content_languages": three_letter_code(row.language),
        "content_truncated": row.truncated,
        "warc_filename": row.warc_filename,
        "warc_record_offset": row.warc_record_offset,
        "warc_record_length": row.warc_record_length,
        "warc_segment": f"{spec.round:06d}",
        "crawl": spec.name,
        "subset": row.subset,
    }


def _decision_columns(row: OutcomeRow, next_fetch_at: float | None) -> dict[str, object]:
    return {
        "kind": row.kind,
        "outcome": row.outcome,
        "reason": row.reason,
        "detail": row.detail,
        "depth": row.depth,
        "priority": row.priority,
        "discovered_from": row.discovered_from,
        "retries": row.retries,
        "fetch_millis": fetch_millis(row),
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "ip": row.ip,
        "host_delay_seconds": row.host_delay_seconds,
        "robots_rule": row.robots_rule,
        "duplicate_of": row.duplicate_of,
        "next_fetch_at": next_fetch_at,
    }


def fetch_millis(row: OutcomeRow) -> int | None:
    """Return how long the download took, in whole milliseconds; None when nothing was asked."""
    if row.started_at is None or row.finished_at is None:
        return None
    return round((row.finished_at - row.started_at) * 1000)


def host_records(hosts: Iterable[HostState]) -> list[dict[str, object]]:
    """Return rows of the hosts table, one for each host asked this round."""
    return [
        {
            "host": host.host,
            "registered_domain": host.registered_domain,
            "ip": host.ip,
            "delay_seconds": host.delay_seconds,
            "last_fetch_at": host.last_fetch_at,
            "not_before_at": host.not_before_at,
            "failures": host.failures,
            "robots_fetched_at": host.robots_fetched_at,
            "robots_status": host.robots_status,
        }
        for host in hosts
    ]
