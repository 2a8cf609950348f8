"""The public tables: the columns that downstream readers may rely on. A change here is a new version."""

from __future__ import annotations

from typing import NamedTuple

SCHEMA_VERSION = 1
"""Raised by every change of a column; CHANGELOG.md says ``schema version N`` and what changed."""


class Column(NamedTuple):
    """One column. ``type`` is string, int16, int32, int64, double, bool, timestamp or list<string>.

    Timestamps are UTC with microseconds. A column is nullable only if it can lack a fact.
    """

    name: str
    type: str
    nullable: bool
    doc: str


class Table(NamedTuple):
    """One table: its columns in order, and the columns by which the rows of a file are sorted."""

    name: str
    columns: tuple[Column, ...]
    sort_by: tuple[str, ...]
    doc: str


def _some(name: str, type: str, doc: str) -> Column:
    return Column(name, type, False, doc)


def _maybe(name: str, type: str, doc: str) -> Column:
    return Column(name, type, True, doc)


COMMON_CRAWL_COLUMNS = (
    _some("url_surtkey", "string", "SURT key of the URL"),
    _some("url", "string", "URL in normal form"),
    _some("url_host_name", "string", "host name or IP address"),
    _maybe("url_host_tld", "string", "last part of the host name"),
    _maybe("url_host_2nd_last_part", "string", "second last part of the host name"),
    _maybe("url_host_3rd_last_part", "string", "third last part of the host name"),
    _maybe("url_host_4th_last_part", "string", "fourth last part of the host name"),
    _maybe("url_host_5th_last_part", "string", "fifth last part of the host name"),
    _maybe("url_host_registry_suffix", "string", "public suffix, registries only"),
    _maybe("url_host_registered_domain", "string", "one part more than the registry suffix"),
    _maybe("url_host_private_suffix", "string", "public suffix, private registrars too"),
    _maybe("url_host_private_domain", "string", "one part more than the private suffix"),
    _maybe("url_host_name_reversed", "string", "host name in reverse order, not for addresses"),
    _some("url_protocol", "string", "http or https"),
    _maybe("url_port", "int32", "port, where the URL names one"),
    _some("url_path", "string", "path of the URL"),
    _maybe("url_query", "string", "query of the URL, without '?'"),
    _maybe("fetch_time", "timestamp", "start of the capture (WARC-Date); null if nothing was fetched"),
    _maybe("fetch_status", "int16", "HTTP status"),
    _maybe("fetch_redirect", "string", "target of a redirect, absolute, in normal form"),
    _maybe("content_digest", "string", "SHA-1, Base32, of the body as stored (WARC-Payload-Digest)"),
    _maybe("content_mime_type", "string", "media type as the server states it"),
    _maybe("content_mime_detected", "string", "media type as the content shows it"),
    _maybe("content_charset", "string", "character encoding that was used"),
    _maybe("content_languages", "string", "ISO 639-3 codes, separated by commas"),
    _maybe("content_truncated", "string", "length, time or disconnect; null for a whole body"),
    _maybe("warc_filename", "string", "file with the record, relative to the crawl folder"),
    _maybe("warc_record_offset", "int32", "offset of the record's gzip member"),
    _maybe("warc_record_length", "int32", "length of the record's gzip member"),
    _maybe("warc_segment", "string", "segment that the file belongs to"),
    _some("crawl", "string", "name of the crawl"),
    _maybe("subset", "string", "warc, crawldiagnostics or robotstxt"),
)
"""Common Crawl's columnar index (cc-index-table, cc-index-schema-flat.json): names, types, order.

Nullable here and not there are the facts that a URL lacks when it was not fetched.
"""

CAPTURES = Table(
    "captures",
    (
        *COMMON_CRAWL_COLUMNS,
        _some("kind", "string", "planned, hop (a followed redirect) or robots"),
        _some("outcome", "string", "what became of the URL in this round"),
        _maybe("reason", "string", "fixed word that says why; null for fetched"),
        _maybe("detail", "string", "free text on the reason"),
        _some("depth", "int64", "links from the nearest seed"),
        _some("priority", "double", "0 to 1"),
        _maybe("discovered_from", "string", "page that led here; null for a seed"),
        _some("retries", "int64", "failures in a row before this round"),
        _maybe("fetch_millis", "int64", "duration of the fetch"),
        _maybe("started_at", "timestamp", "start of the attempt"),
        _maybe("finished_at", "timestamp", "end of the attempt"),
        _maybe("ip", "string", "address that was asked"),
        _maybe("host_delay_seconds", "double", "pause that the host was given"),
        _maybe("robots_rule", "string", "line of robots.txt that decided"),
        _maybe("duplicate_of", "string", "page that was kept instead"),
        _maybe("next_fetch_at", "timestamp", "when the URL is due again"),
    ),
    ("url_surtkey", "url"),
    "one row per URL of the round's plan, per redirect hop, per robots.txt",
)

PAGES = Table(
    "pages",
    (
        _some("url", "string", "URL that answered"),
        _some("final_url", "string", "the same as url"),
        _some("url_surtkey", "string", "SURT key of the URL"),
        _some("host", "string", "host name"),
        _some("fetched_at", "timestamp", "start of the capture"),
        _some("status", "int64", "HTTP status"),
        _some("content_hash", "string", "SHA-1, Base32, of the decoded body"),
        _maybe("content_type", "string", "Content-Type as sent"),
        _maybe("charset", "string", "character encoding that was used"),
        _maybe("title", "string", "title of the document"),
        _some("text", "string", "main text"),
        _maybe("language", "string", "ISO 639 code"),
        _some("links", "list<string>", "targets in normal form"),
        _some("depth", "int64", "links from the nearest seed"),
        _some("priority", "double", "0 to 1"),
        _maybe("discovered_from", "string", "page that led here; null for a seed"),
        _maybe("redirected_from", "string", "planned URL, where another one answered"),
        _maybe("etag", "string", "ETag as sent"),
        _maybe("last_modified", "string", "Last-Modified as sent"),
        _some("fetch_millis", "int64", "duration of the fetch"),
        _some("changed", "bool", "true if an earlier version is known"),
        _some("warc_filename", "string", "file with the record, relative to the crawl folder"),
        _some("warc_record_offset", "int64", "offset of the record's gzip member"),
        _some("warc_record_length", "int64", "length of the record's gzip member"),
    ),
    ("url_surtkey", "url"),
    "unique HTML and plain text pages, new or changed in this round",
)

LINKS = Table(
    "links",
    (
        _some("source_url", "string", "page with the link"),
        _some("target_url", "string", "target in normal form"),
        _some("anchor", "string", "text of the link"),
        _some("rel", "string", "rel attribute"),
    ),
    ("source_url", "target_url"),
    "edges of the link graph",
)

DUPLICATES = Table(
    "duplicates",
    (
        _some("url", "string", "page that was removed"),
        _some("kept_url", "string", "page that was kept"),
        _some("kind", "string", "exact or near"),
        _some("similarity", "double", "estimated Jaccard similarity, 1 for exact"),
    ),
    ("url", "kept_url"),
    "removed pages and what they lost to",
)

HOSTS = Table(
    "hosts",
    (
        _some("host", "string", "host name"),
        _some("registered_domain", "string", "registered domain, or the address"),
        _maybe("ip", "string", "address asked last"),
        _maybe("delay_seconds", "double", "pause between requests"),
        _maybe("last_fetch_at", "timestamp", "start of the last request"),
        _maybe("not_before_at", "timestamp", "the host asked not to be visited before"),
        _some("failures", "int64", "failures in a row"),
        _maybe("robots_fetched_at", "timestamp", "when robots.txt was asked for last"),
        _maybe("robots_status", "int64", "HTTP status of robots.txt; null if there was no answer"),
    ),
    ("host",),
    "each host asked in this round",
)

REMOVED = Table(
    "removed",
    (
        _some("url", "string", "page of an earlier round"),
        _some("reason", "string", "why an index must take it out"),
        _some("removed_at", "timestamp", "when that became known"),
    ),
    ("url",),
    "pages that are gone, duplicates now, or not to be indexed any more",
)

TABLES = {table.name: table for table in (CAPTURES, PAGES, LINKS, DUPLICATES, HOSTS, REMOVED)}
