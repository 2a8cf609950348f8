"""The library calls that a page costs at the least, in one loop: fetch, WARC, links, main text, sketch.

Arguments: port of the page server, file of URLs, folder to write to.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
from pathlib import Path
from urllib.parse import urlsplit

import ada_url
import requests
import trafilatura
import xxhash
from datasketch import MinHash
from selectolax.lexbor import LexborHTMLParser
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

BASE = MinHash(128, hashfunc=xxhash.xxh32_intdigest)


def sketch(text: str) -> MinHash:
    """Return 128 MinHash values over word 5-grams."""
    words = text.lower().split()
    signature = BASE.copy()
    signature.update_batch({" ".join(words[i : i + 5]).encode() for i in range(max(1, len(words) - 4))})
    return signature


def links_of(html: str, url: str) -> set[str]:
    """Return the page's links, resolved and without fragment."""
    found = set()
    for node in LexborHTMLParser(html).css("a[href]"):
        try:
            found.add(ada_url.join_url(url, node.attributes["href"] or "").partition("#")[0])
        except ValueError:
            continue
    return found


def store(writer: WARCWriter, url: str, headers: list[tuple[str, str]], body: bytes) -> None:
    """Write one response record."""
    http = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
    writer.write_record(
        writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=http)
    )


def main() -> None:
    """Do the calls for every URL, one after another."""
    port, seeds, folder = sys.argv[1:]
    session = requests.Session()
    with (Path(folder) / "bare.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for url in Path(seeds).read_text().splitlines():
            parts = urlsplit(url)
            response = session.get(
                f"http://127.0.0.1:{port}{parts.path}", headers={"Host": parts.netloc}, stream=True
            )
            raw = response.raw.read(decode_content=False)
            store(writer, url, list(response.raw.headers.items()), raw)
            html = gzip.decompress(raw).decode("utf-8", "replace")
            hashlib.sha1(html.encode(), usedforsecurity=False).hexdigest()
            links_of(html, url)
            sketch(trafilatura.extract(html, fast=True, include_comments=False) or "")


if __name__ == "__main__":
    main()
