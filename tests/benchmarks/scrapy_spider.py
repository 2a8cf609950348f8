"""A Scrapy spider with the outputs of a round: WARC, links, main text, sketch; same libraries, one process.

Arguments: port of the page server, file of URLs, folder to write to.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

import scrapy
import trafilatura
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from warcio.warcwriter import WARCWriter

sys.path.insert(0, str(Path(__file__).parent))
from bare_calls import sketch, store


class PageSpider(scrapy.Spider):
    """Fetches the URLs and does with each page what a round does."""

    name = "pages"
    links = LinkExtractor()

    async def start(self):
        """Yield a request for each URL."""
        port, seeds, folder = sys.argv[1:]
        self.file = (Path(folder) / "scrapy.warc.gz").open("wb")
        self.writer = WARCWriter(self.file, gzip=True)
        for url in Path(seeds).read_text().splitlines():
            parts = urlsplit(url)
            yield scrapy.Request(
                f"http://127.0.0.1:{port}{parts.path}", headers={"Host": parts.netloc}, dont_filter=True
            )

    def parse(self, response):
        """Store, extract links and text, sketch."""
        headers = [(k.decode(), v[0].decode()) for k, v in response.headers.items()]
        store(self.writer, response.url, headers, response.body)
        found = self.links.extract_links(response)
        sketch(trafilatura.extract(response.text, fast=True, include_comments=False) or "")
        return {"url": response.url, "links": len(found)}


if __name__ == "__main__":
    process = CrawlerProcess(
        {
            "LOG_ENABLED": False,
            "CONCURRENT_REQUESTS": 16,
            "ROBOTSTXT_OBEY": False,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(PageSpider)
    process.start()
