"""What each of Common Crawl's published example queries asks, in DuckDB's SQL.

One entry for each file of cc-index-table's ``src/sql/examples/cc-index``, by its name, in our own words. What differs
from the published text: Presto's functions that DuckDB names otherwise; thresholds and top-level domains that
fit a small crawl; views that become WITH; a list of ranked sites (``ranks``) that stands in for Alexa's.
"""

from __future__ import annotations

_WARC = "FROM ccindex.ccindex WHERE crawl = $crawl AND subset = 'warc'"
_HOME_HOST = "host = domain OR host = 'www.' || domain"
_SPECIFIC = "url_host_name AS host, url_host_registered_domain AS domain"
_PRIMARY = "nullif(regexp_extract(content_languages, '^([a-z]{3})', 1), '')"


def _likelihood(one: str, other: str) -> str:
    """Return how much oftener two values meet on a page than chance would have it: the sum of the logs of the
    ratios of counted to expected pages, in the four cells of the table, doubled, as the published text has it."""

    def cell(seen: str, expected: str) -> str:
        return f"CASE WHEN {seen} = 0 THEN 0 ELSE ln({seen} / ({expected})) END"

    pairs = f"""
        SELECT {one} AS one, {other} AS other, count(*)::DOUBLE AS both_,
            (sum(count(*)) OVER (PARTITION BY {one}))::DOUBLE AS ones,
            (sum(count(*)) OVER (PARTITION BY {other}))::DOUBLE AS others, (sum(count(*)) OVER ())::DOUBLE AS total
        {_WARC} GROUP BY {one}, {other}"""
    terms = [
        cell("both_", "ones * others / total"),
        cell("(ones - both_)", "ones * (total - others) / total"),
        cell("(others - both_)", "others * (total - ones) / total"),
        cell("(total - ones - others + both_)", "(total - ones) * (total - others) / total"),
    ]
    return f"""
        WITH pairs AS ({pairs})
        SELECT one, other, both_, 2 * ({" + ".join(terms)}) AS likelihood,
            both_ / others AS one_given_other, both_ / ones AS other_given_one
        FROM pairs WHERE both_ >= 1 AND other NOT LIKE '%,%' AND one IS NOT NULL ORDER BY other, likelihood DESC, one"""


def _sites(mine: str, least: str) -> str:
    """Return hosts with the number of their pages in some languages, in others, and a histogram of languages."""
    return f"""
        WITH sites AS (
            SELECT url_host_tld, {_SPECIFIC}, count(*) AS pages, count(content_languages) AS with_language,
                count(*) FILTER ({mine}) AS wanted, count(DISTINCT {_PRIMARY}) AS languages,
                sum(count(*)) OVER (PARTITION BY url_host_registered_domain) AS pages_domain,
                list_slice(list_reverse_sort(list_transform(map_entries(histogram({_PRIMARY})
                    FILTER (content_languages IS NOT NULL)), lambda e: (e.value, e.key))), 1, 10)::JSON AS top
            {_WARC} GROUP BY url_host_tld, url_host_registered_domain, url_host_name)
        SELECT host, domain, pages, pages_domain, wanted, with_language - wanted AS others,
            pages - with_language AS unknown, 100.0 * wanted / pages AS share, languages, top
        FROM sites WHERE {least} ORDER BY wanted DESC, host"""


QUERIES = {
    "average-warc-record-length-by-mime-type": f"""
        SELECT content_mime_detected, count(*) AS pages, 100.0 * count(*) / sum(count(*)) OVER () AS share,
            avg(warc_record_length) AS mean_length, sum(warc_record_length) AS stored,
            100.0 * sum(warc_record_length) / sum(sum(warc_record_length)) OVER () AS stored_share
        {_WARC} GROUP BY content_mime_detected ORDER BY pages DESC, 1""",
    "compare-mime-type-http-vs-detected": f"""
        SELECT content_mime_type, content_mime_detected, count(*) AS pages
        {_WARC} GROUP BY ALL ORDER BY pages DESC, 1""",
    "correlation-language-charset": _likelihood("content_charset", "content_languages"),
    "count-by-partition": "SELECT crawl, subset, count(*) FROM ccindex.ccindex GROUP BY crawl, subset ORDER BY ALL",
    "count-by-tld-page-host-domain": f"""
        SELECT url_host_tld, count(*) AS pages, count(DISTINCT url_host_name) AS hosts,
            count(DISTINCT url_host_registered_domain) AS domains
        {_WARC} GROUP BY url_host_tld ORDER BY pages DESC, 1""",
    "count-domains-alexa-top-1m": """
        SELECT site, rank, count(*) AS pages
        FROM ccindex.ccindex JOIN ranks ON site = url_host_registered_domain
        WHERE crawl = $crawl GROUP BY site, rank ORDER BY rank""",
    "count-domains-of-tld": f"""
        SELECT url_host_registered_domain, count(*) AS pages
        {_WARC} AND url_host_tld = 'hu' GROUP BY 1 HAVING count(*) >= 3 ORDER BY pages DESC""",
    "count-fetch-status": """
        SELECT fetch_status, count(*) AS captures FROM ccindex.ccindex
        WHERE crawl = $crawl AND subset = 'crawldiagnostics' GROUP BY 1 ORDER BY captures DESC, 1""",
    "count-hostname-elements": f"""
        WITH labels AS (
            SELECT unnest(list_reverse(string_split(url_host_name, '.'))) AS label,
                generate_subscripts(string_split(url_host_name, '.'), 1) AS place
            {_WARC} AND url_host_tld = 'fr')
        SELECT label, count(*) AS pages, histogram(place) AS places
        FROM labels GROUP BY label HAVING count(*) >= 2 ORDER BY pages DESC, label""",
    "count-idna": r"""
        SELECT url_host_registered_domain, url_host_name, count(*) AS captures FROM ccindex.ccindex
        WHERE crawl = $crawl AND regexp_matches(url_host_name, 'xn--|[^\x00-\x7F]') GROUP BY 1, 2 ORDER BY ALL""",
    "count-language-tld": f"""
        SELECT content_languages, url_host_tld, count(*) AS pages
        {_WARC} AND content_languages NOT LIKE '%,%' GROUP BY 1, 2 HAVING count(*) >= 3 ORDER BY pages DESC, 1""",
    "count-robotstxt-url-paths": """
        SELECT regexp_extract(url, '^[a-z]+://[^/]*(/[^?#]*)', 1) AS path, count(*) AS captures
        FROM ccindex.ccindex WHERE crawl = $crawl AND subset = 'robotstxt'
        GROUP BY path HAVING path = any_value(url_path) ORDER BY captures DESC""",
    "count-url-path-elements": f"""
        WITH elements AS (
            SELECT unnest([url_decode(part) FOR part IN string_split(url_path, '/') IF part <> '']) AS element
            {_WARC} AND url_host_tld = 'fr')
        SELECT element, count(*) AS pages FROM elements GROUP BY element HAVING count(*) >= 2 ORDER BY pages DESC""",
    "discovery-of-non-english-sites": _sites(
        "content_languages NOT LIKE 'eng%'", "url_host_tld = 'va' AND wanted >= 2 AND wanted / pages >= .3"
    ),
    "get-home-pages-languages": f"""
        SELECT url, content_languages {_WARC} AND url_path = '/' AND url_query IS NULL
            AND list_contains(['isl', 'cat', 'nno', 'gle', 'fao'], content_languages) ORDER BY url""",
    "get-language-translations-url-path": f"""
        WITH found AS (
            SELECT url_host_registered_domain AS domain,
                unnest([p FOR p IN string_split(url_path, '/')[2:-2] IF regexp_full_match(p, '[a-z]{{2}}')]) AS lang
            {_WARC} AND url_host_registry_suffix = 'va')
        SELECT domain, count(DISTINCT lang) AS langs, count(*) AS pages, histogram(lang) AS by_lang
        FROM found GROUP BY domain ORDER BY pages DESC""",
    "get-records-for-language": f"""
        SELECT url, warc_filename, warc_record_offset, warc_record_length
        {_WARC} AND content_languages = 'isl' ORDER BY url""",
    "get-records-home-pages": f"""
        SELECT site, rank, url, fetch_time, warc_filename, warc_record_offset, warc_record_length, fetch_redirect
        FROM (SELECT *, {_SPECIFIC} FROM ccindex.ccindex) RIGHT JOIN ranks ON site = domain
        WHERE crawl = $crawl AND subset = 'warc' AND url_query IS NULL AND ({_HOME_HOST})
            AND regexp_matches(url_path, '^/?(?:index\\.(?:html?|php))?$') ORDER BY rank""",
    "get-records-of-domain": f"""
        SELECT url, warc_filename, warc_record_offset, warc_record_length
        {_WARC} AND url_host_registered_domain = 'vatican.va' ORDER BY url LIMIT 1000""",
    "get-records-of-mime-type": f"""
        SELECT url, content_mime_type, content_mime_detected, warc_filename, warc_record_offset, warc_record_length
        {_WARC} AND (content_mime_detected = 'application/pdf' OR content_mime_type LIKE '%pdf%')
        ORDER BY url LIMIT 1000""",
    "get-records-robotstxt": f"""
        SELECT site, rank, url, fetch_time, fetch_status, warc_filename, warc_record_offset, warc_record_length,
            fetch_redirect, content_mime_type, content_mime_detected
        FROM (SELECT *, {_SPECIFIC} FROM ccindex.ccindex) RIGHT JOIN ranks ON site = domain
        WHERE crawl = $crawl AND subset = 'robotstxt' AND ({_HOME_HOST})
        QUALIFY row_number() OVER (PARTITION BY url ORDER BY fetch_time DESC) = 1 ORDER BY rank, url""",
    "host_length_distrib": f"""
        SELECT len(string_split(url_host_name, '.')) AS labels, count(*) AS pages,
            count(DISTINCT url_host_name) AS hosts {_WARC} GROUP BY labels ORDER BY labels""",
    "loglikelihood-language-tld": _likelihood("url_host_tld", "content_languages"),
    "random-sample-extract": """
        SELECT url, warc_filename, warc_record_offset, warc_record_length
        FROM ccindex TABLESAMPLE bernoulli(40%) REPEATABLE (1)
        WHERE crawl = $crawl AND subset = 'warc' AND content_languages = 'eng'""",
    "random-sample-urls": """
        SELECT url FROM ccindex.ccindex TABLESAMPLE bernoulli(40%) REPEATABLE (1)
        WHERE crawl = $crawl AND subset IN ('warc', 'crawldiagnostics')""",
    "similar-domains": f"""
        SELECT url_host_registered_domain, levenshtein('wikipedia', url_host_2nd_last_part) AS distance,
            count(*) AS pages, count(DISTINCT url_host_name) AS hosts
        {_WARC} AND levenshtein('wikipedia', url_host_2nd_last_part) <= 2 GROUP BY 1, 2 ORDER BY pages DESC, 1""",
    "site-discovery-by-language": f"""
        WITH sites AS (
            SELECT {_PRIMARY} AS language, url_host_tld, {_SPECIFIC}, count(*) AS pages,
                sum(count(*)) OVER (PARTITION BY {_PRIMARY}) AS pages_language,
                sum(count(*)) OVER (PARTITION BY url_host_registered_domain) AS pages_domain,
                sum(count(*)) OVER (PARTITION BY url_host_name) AS pages_host,
                list_slice(list_reverse_sort(list_transform(map_entries(histogram(content_languages)),
                    lambda e: (e.value, e.key))), 1, 20)::JSON AS top
            {_WARC} GROUP BY language, url_host_tld, url_host_registered_domain, url_host_name)
        SELECT language, host, pages, 100.0 * pages / pages_language AS of_language,
            100.0 * pages / pages_domain AS of_domain, 100.0 * pages / pages_host AS of_host, top
        FROM sites WHERE pages >= 2 AND language IN ('cat', 'eus', 'glg', 'oci') AND pages / pages_host >= .05
        ORDER BY language, url_host_tld, pages DESC""",
    "site-discovery-hungarian": _sites(
        "content_languages LIKE 'hun%'", "wanted >= 2 AND wanted / pages >= .1"
    ),
}
