"""The nouns of scope rules: the crawl's limits on links, one link with its surroundings, a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from crawler.hosts import registered_domain
from crawler.urls import UrlParts, split
from schemas.state import DomainRules

DEFAULT_PORTS = frozenset((80, 443, 8080, 8443))

# What a page of HTML or plain text is hardly ever served as. Endings that are as often a name (.au, .ai, .so,
# .ts, .class, .pages) are left out: a request for nothing costs less than a page never seen.
_NEVER_A_PAGE = """
7z ace apk arc arj bin bz2 cab cpio crx deb dmg ear exe gz iso jar lz lz4 lzma msi msix pkg rar rpm
tar tbz tgz txz war whl xpi xz z zip zst
avif bmp cdr cr2 dng dwg dxf eps gif heic heif ico icns jfif jp2 jpe jpeg jpg jxl nef pbm pcx pgm png
pnm ppm psd svg svgz tga tif tiff webp wmf xcf
3gp aac aif aiff amr ape asf avi flac flv m3u m3u8 m4a m4b m4v midi mka mkv mov mp2 mp3 mp4 mpa mpeg
mpg oga ogg ogv opus rm swf vob wav webm wma wmv
doc docm docx dot dotx epub mobi odg odp ods odt ott pdf potx pps ppsx ppt pptx ps rtf vsd xls xlsb xlsm
xlsx xps
atom css csv dat db eot geojson ics js json kml kmz mjs otf parquet rss scss sqlite sqlite3 tsv ttf vcf
wasm webmanifest woff woff2
dll dylib img obj pyc pyo qcow2 torrent vdi vmdk
"""
EXCLUDED_EXTENSIONS = frozenset(_NEVER_A_PAGE.split())


class Verdict(NamedTuple):
    """Whether a link is admitted; ``reason`` is the fixed word under which a rejection is counted."""

    admitted: bool
    reason: str | None = None

    @staticmethod
    def reject(reason: str) -> Verdict:
        """Return the verdict that keeps a link out for this reason."""
        return Verdict(False, reason)


ADMITTED = Verdict(True)


@dataclass(frozen=True)
class ScopePolicy:
    """The crawl's limits on links. Impossible values raise ValueError naming the field and the value.

    ``scope`` any admits every host; domain those whose registered domain is that of one of ``seed_hosts``;
    host these hosts alone. ``ports`` holds every port that may be asked. ``max_depth`` counts links from a
    seed, ``max_segment_repeats`` how often a path may say one segment, ``max_page_number`` how far a
    pagination is followed (item offsets: ten times as far). Calendars are followed ``calendar_years_ahead``
    and ``calendar_years_back`` from now.
    """

    max_depth: int = 20
    max_url_length: int = 2048
    max_path_segments: int = 20
    max_segment_repeats: int = 2
    max_page_number: int = 10_000
    calendar_years_ahead: int = 2
    calendar_years_back: int = 20
    scope: str = "any"
    seed_hosts: frozenset[str] = frozenset()
    ports: frozenset[int] = DEFAULT_PORTS
    excluded_extensions: frozenset[str] = EXCLUDED_EXTENSIONS
    seed_domains: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Validate, and derive the seeds' registered domains."""
        for name in ("max_depth", "calendar_years_ahead", "calendar_years_back"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")
        for name in ("max_url_length", "max_path_segments", "max_segment_repeats", "max_page_number"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if self.scope not in ("any", "domain", "host"):
            raise ValueError(f"scope must be any, domain or host, got {self.scope!r}")
        bad_ports = sorted(port for port in self.ports if not 0 < port < 65_536)
        if bad_ports:
            raise ValueError(f"ports must be from 1 to 65535, got {bad_ports[0]}")
        object.__setattr__(self, "seed_domains", frozenset(map(registered_domain, self.seed_hosts)))


class LinkContext(NamedTuple):
    """One link and all that a rule may look at.

    ``depth`` is the link's own: 0 for a seed, otherwise its page's plus one. ``source_url`` is that page,
    None for a seed. ``rules`` are the operator's for the link's host. ``now`` is UTC epoch seconds.
    """

    url: str
    parts: UrlParts
    depth: int
    source_url: str | None
    rules: DomainRules
    policy: ScopePolicy
    now: float

    @property
    def domain(self) -> str:
        """The registered domain of the link's host."""
        return registered_domain(self.parts.host)

    @property
    def source_domain(self) -> str | None:
        """The registered domain of the page that holds the link, None for a seed."""
        return None if self.source_url is None else registered_domain(split(self.source_url).host)


Rule = Callable[[LinkContext], Verdict]
