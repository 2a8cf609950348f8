"""What a site's robots.txt says about a URL (RFC 9309).

protego matches paths; reading the bytes, the lines, the groups and our own name is done here, where
protego is more lenient than the RFC (docs/adr/0002-robots-matching.md).
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from protego import Protego

from crawler.patterns import ParamPlaces

MAX_BODY_BYTES = 500 * 1024
"""The most of a robots.txt that is read (RFC 9309, section 2.5); a line cut by it is left out."""

MAX_REDIRECTS = 5
"""How many redirects a robots.txt may take (section 2.3.1.2); one more makes it unavailable."""

MIN_ERROR_TTL_SECONDS = 300.0
MAX_ERROR_TTL_SECONDS = 3600.0

RULES, ALLOW, DENY = "rules", "allow", "deny"

_LINE_END = re.compile(r"\r\n|\r|\n")
_USER_AGENT = r"user[-\s]?agent"
_DISALLOW = r"disallow|dissallow|dissalow|disalow|diasllow|disallaw"
_DIRECTIVE = re.compile(
    rf"({_USER_AGENT}|{_DISALLOW}|allow|crawl[-\s]delay|request[-\s]rate)(?:[^\s:]*\s*:|\s)\s*(.*)", re.I
)
_RFC_TOKEN = re.compile(r"[A-Za-z_-]+")
_WIDE_TOKEN = re.compile(r"[\w-]+")
_BYTES = {0xDC00 + byte: f"%{byte:02X}" for byte in range(0x80, 0x100)}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
_BLOCK = 64
_PLACED = re.compile(r"[?&][^?&*$]")


class RobotsVerdict(NamedTuple):
    """Whether a URL may be asked for; ``rule`` is the line that forbids it, as the site wrote it."""

    allowed: bool
    rule: str | None
    crawl_delay_seconds: float | None


class _Group(NamedTuple):
    """The lines that concern one agent, merged from all its groups."""

    rules: list[tuple[str, str]]
    delays: list[tuple[str, str]]


class RobotsRules:
    """The rules of one robots.txt for one crawler.

    ``body`` is the file as sent, of any length and content; ``agent`` is the crawler's product token
    (anything after it, such as ``/1.0``, is ignored). Groups that name the token, compared without case,
    are merged and replace the groups for ``*``; a token is matched whole, never as a part (2.2.1). Lines
    other than Allow and Disallow neither end a group nor begin one (2.2.4). The longest pattern wins and
    Allow wins a tie (2.2.2). Never raises on any bytes.

    As the normal form of URLs sorts parameters, a Disallow that speaks of the first one or of a later one
    (``/*?sort=``, ``/*&sort=``) also holds for a URL that it matches with another parameter in first place.
    """

    def __init__(self, body: bytes, agent: str) -> None:
        group = _group_for(_lines(body), agent)
        self._rules = group.rules
        self._matcher = _matcher([*group.rules, *group.delays])
        self._blocks: list[tuple[Protego, list[tuple[str, str]]]] | None = None
        self.crawl_delay_seconds = _slowest(group.delays)
        placed = [rule for rule in group.rules if rule[0] == "Disallow" and _PLACED.search(rule[1])]
        self._placed = (_matcher(placed), ParamPlaces(pattern for _, pattern in placed)) if placed else None

    def verdict(self, url: str) -> RobotsVerdict:
        """Return whether ``url``, absolute or path only, may be asked for; /robots.txt itself always may."""
        denied = self._denied_order(url) if self._matcher.can_fetch(url, "*") else url
        rule = None if denied is None else self._rule_against(denied)
        return RobotsVerdict(denied is None, rule, self.crawl_delay_seconds)

    def _denied_order(self, url: str) -> str | None:
        """Return the URL with its parameters in an order that is forbidden, None if there is none."""
        if self._placed is None:
            return None
        matcher, places = self._placed
        for other in places.orders(url):
            if not matcher.can_fetch(other, "*") and not self._matcher.can_fetch(other, "*"):
                return other
        return None

    def _rule_against(self, url: str) -> str:
        """Return the longest Disallow line that matches, blocks first so that long files stay cheap."""
        if self._blocks is None:
            lines = [rule for rule in self._rules if rule[0] == "Disallow"]
            lines.sort(key=lambda rule: len(rule[1]), reverse=True)
            blocks = (lines[at : at + _BLOCK] for at in range(0, len(lines), _BLOCK))
            self._blocks = [(_matcher(block), block) for block in blocks]
        for matcher, block in self._blocks:
            if not matcher.can_fetch(url, "*"):
                rule = next(rule for rule in block if not _matcher([rule]).can_fetch(url, "*"))
                return f"Disallow: {rule[1]}"
        return "Disallow"


def product_token(user_agent: str) -> str:
    """Return the lower-case product token of a User-Agent value: ``RoundCrawl/1.0 (...)`` is roundcrawl.

    Letters, ``-`` and ``_`` (section 2.2.1). A name that has others too, such as digits, keeps them.
    """
    value = user_agent.strip()
    wide = _WIDE_TOKEN.match(value)
    token = wide[0] if wide else value.split("/")[0]
    return token.lower()


def clip(body: bytes) -> bytes:
    """Return the part of a robots.txt that is read: whole lines, at most MAX_BODY_BYTES."""
    if len(body) <= MAX_BODY_BYTES:
        return body
    return body[: 1 + max(body.rfind(b"\n", 0, MAX_BODY_BYTES), body.rfind(b"\r", 0, MAX_BODY_BYTES))]


def _lines(body: bytes) -> list[str]:
    """Return the lines without comments; bytes that are not UTF-8 become percent escapes."""
    text = clip(body).decode("utf-8-sig", "surrogateescape")
    lines = _LINE_END.split(text.translate(_BYTES))
    return [line.partition("#")[0].strip() for line in lines]


def _names(value: str, token: str) -> bool:
    """Return whether a User-agent line names the crawler with this token."""
    pattern = _RFC_TOKEN if _RFC_TOKEN.fullmatch(token) else _WIDE_TOKEN
    # A star inside a name means nothing here; some sites write it all the same.
    found = (pattern.match(name) for name in {value, value.replace("*", "")})
    return any(name is not None and name[0].lower() == token for name in found)


def _group_for(lines: list[str], agent: str) -> _Group:
    """Return the merged lines of the groups for ``agent``, or of those for ``*`` if none names it."""
    token = product_token(agent)
    own, everyone = _Group([], []), _Group([], [])
    named = False
    groups: list[_Group] = []
    delayed: list[_Group] = []
    in_rules = in_delays = False
    for line in lines:
        directive = _DIRECTIVE.match(line)
        if directive is None:
            continue
        field, value = directive[1].lower(), directive[2].strip()
        if field.startswith("user"):
            groups, in_rules = ([] if in_rules else groups), False
            delayed, in_delays = ([] if in_delays else delayed), False
            group = own if _names(value, token) else everyone if _is_everyone(value) else None
            named = named or group is own
            if group is not None:
                groups, delayed = _with(groups, group), _with(delayed, group)
        elif field.startswith(("crawl", "request")):
            in_delays = True
            for group in delayed:
                group.delays.append(("Crawl-delay" if field.startswith("crawl") else "Request-rate", value))
        else:
            in_rules = in_delays = True
            # A pattern that starts with neither can match no path (2.2.2); an empty one says nothing.
            if value.startswith(("/", "*")):
                for group in groups:
                    group.rules.append(("Allow" if field == "allow" else "Disallow", value))
    return own if named else everyone


def _with(groups: list[_Group], group: _Group) -> list[_Group]:
    return groups if any(member is group for member in groups) else [*groups, group]


def _is_everyone(value: str) -> bool:
    return value == "*" or value[:2] in ("* ", "*\t")


def _matcher(lines: list[tuple[str, str]]) -> Protego:
    """Return protego on these lines only, under one name, so that it has no agent to choose."""
    safe = (f"{field}: {_CONTROL.sub(lambda match: quote(match[0]), value)}" for field, value in lines)
    return Protego.parse("\n".join(("User-agent: *", *safe)))


def _slowest(delays: list[tuple[str, str]]) -> float | None:
    """Return the longest pause, in seconds, that Crawl-delay or Request-rate lines ask for."""
    pauses = []
    for line in delays:
        matcher = _matcher([line])
        crawl_delay, rate = matcher.crawl_delay("*"), matcher.request_rate("*")
        if crawl_delay is not None:
            pauses.append(crawl_delay)
        elif rate is not None:
            pauses.append(rate.seconds / rate.requests)
    return max(pauses, default=None)


def access_of(status: int | None) -> str:
    """Return what an answer to /robots.txt means: ``rules``, ``allow`` or ``deny`` (section 2.3.1).

    ``status`` is None for no answer at all (time-out, DNS, refused): deny, as with 429 and 5xx, because
    a site that cannot say no has not said yes. 4xx: there is none, so all is allowed. A redirect that
    still is one here has used up its five hops or leads nowhere: unavailable, like 4xx.
    """
    if status is None or status == 429 or status >= 500 or status < 200:
        return DENY
    return RULES if status < 300 else ALLOW


def ttl_seconds(access: str, ttl_hours: float, last_error_ttl_seconds: float | None = None) -> float:
    """Return how long an answer stands: ``ttl_hours``, or 5 minutes doubling to 1 hour for ``deny``.

    ``last_error_ttl_seconds`` is what the previous answer got if it was ``deny`` too. Never under
    5 minutes, so that an answer always lasts for the request it was fetched for.
    """
    if access != DENY:
        return max(MIN_ERROR_TTL_SECONDS, ttl_hours * 3600.0)
    return min(MAX_ERROR_TTL_SECONDS, max(MIN_ERROR_TTL_SECONDS, 2.0 * (last_error_ttl_seconds or 0.0)))
