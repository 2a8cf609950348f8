"""The operator's rules per domain: read strictly from YAML, looked up for a host, kept as plain JSON."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any

import yaml

from crawler.hosts import is_address, is_registry_suffix
from crawler.patterns import normal_pattern
from crawler.urls import NormalUrl, host_of, normalise
from schemas.state import DomainRules

MAX_POLICY_CHARS = 10_000_000
MAX_PATTERN_CHARS = 2048
MAX_DELAY_SECONDS = 30 * 86_400.0


class PolicyError(ValueError):
    """A policy that cannot be used; the text names the value and the remedy."""


def parse_policy(text: str) -> dict[str, DomainRules]:
    """Return the rules of a policy file by domain, names in the form that URLs have them.

    ``text`` is YAML: a mapping ``domains`` from domain, host or IP address to its rules, which are the fields
    of DomainRules. Raises PolicyError for anything unknown, twice, of the wrong type or out of range, so that
    a slip never turns into a rule that is silently not kept.
    """
    if len(text) > MAX_POLICY_CHARS:
        raise PolicyError(
            f"the policy has {len(text)} characters; at most {MAX_POLICY_CHARS} are read: split it"
        )
    try:
        document = yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise PolicyError(f"not YAML: {' '.join(str(error).split())}") from error
    except (RecursionError, ValueError, LookupError, AttributeError, TypeError) as error:
        # What the loader's constructors raise at tags that belie their value, such as !!bool 7.
        raise PolicyError(f"not a policy: {error or type(error).__name__}") from error
    if not isinstance(document, dict) or set(document) != {"domains"}:
        raise PolicyError("a policy is one mapping with the key 'domains', got " + _shown(document))
    domains = document["domains"]
    if not isinstance(domains, dict):
        raise PolicyError(f"'domains' must map domain names to rules, got {_shown(domains)}")
    return _rules_by_name(domains)


def _rules_by_name(domains: Mapping[Any, object]) -> dict[str, DomainRules]:
    rules: dict[str, DomainRules] = {}
    for key, members in domains.items():
        name = _domain_name(key)
        if name in rules:
            raise PolicyError(f"domain {key!r} stands twice (as {name!r}): keep one")
        rules[name] = _domain_rules(name, members)
    return rules


class _StrictLoader(yaml.SafeLoader):
    """Plain data only, and no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    text = f"key {key.value!r} stands twice: keep one"
                    raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def _shown(value: object) -> str:
    """Return the value shortened: YAML's aliases make values that are small in the file and huge as text."""
    text = reprlib.repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _domain_name(key: object) -> str:
    if not isinstance(key, str):
        raise PolicyError(f"domain {_shown(key)} is not text: put it in quotes")
    if key.startswith("*."):
        raise PolicyError(f"domain {key!r}: write {key[2:]!r}, rules cover every host below it")
    bare = key.strip("[]")
    normal = normalise(f"http://[{bare}]/" if bare.count(":") > 1 else f"http://{bare}/")
    if not isinstance(normal, NormalUrl) or bare.count(":") == 1 or set("/?#@\\") & set(bare):
        raise PolicyError(f"domain {_shown(key)} is no host name: write it like 'example.org'")
    host = host_of(normal.url)
    if is_registry_suffix(host):
        raise PolicyError(f"domain {key!r} is a public suffix: name the domains below it")
    return host


def _domain_rules(name: str, members: object) -> DomainRules:
    if not isinstance(members, dict):
        raise PolicyError(
            f"rules of {name!r} must be a mapping like {{exclude: true}}, got {_shown(members)}"
        )
    values: dict[str, Any] = {}
    for key, value in members.items():
        check = _CHECKS.get(key) if isinstance(key, str) else None
        if check is None:
            raise PolicyError(f"{name}: unknown rule {_shown(key)}; known are {', '.join(sorted(_CHECKS))}")
        values[key] = check(f"{name}: {key}", value)
    return DomainRules(**values)


def _flag(what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"{what} must be true or false, got {_shown(value)}")
    return value


def _count(what: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise PolicyError(f"{what} must be a whole number, 0 or more, got {_shown(value)}")
    return value


def _number(what: str, value: object, most: float, range_text: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise PolicyError(f"{what} must be a number {range_text}, got {_shown(value)}")
    return float(value)


def _seconds(what: str, value: object) -> float:
    return _number(what, value, MAX_DELAY_SECONDS, f"from 0 to {MAX_DELAY_SECONDS:.0f} (30 days)")


def _share(what: str, value: object) -> float:
    return _number(what, value, 1.0, "from 0 to 1")


def _patterns(what: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise PolicyError(f'{what} must be a list like ["/cart"], got {_shown(value)}')
    return tuple(_pattern(what, pattern) for pattern in value)


def _pattern(what: str, pattern: object) -> str:
    if not isinstance(pattern, str) or not pattern.startswith(("/", "*")) or len(pattern) > MAX_PATTERN_CHARS:
        rule = f"a pattern begins with / or * and has at most {MAX_PATTERN_CHARS} characters"
        raise PolicyError(f"{what}: {rule}, got {_shown(pattern)}")
    return normal_pattern(pattern)


_CHECKS: dict[str, Callable[[str, object], Any]] = {
    "exclude": _flag,
    "exclude_paths": _patterns,
    "min_delay_seconds": _seconds,
    "round_urls": _count,
    "total_urls": _count,
    "max_depth": _count,
    "priority": _share,
    "insecure_tls": _flag,
}


class PolicyBook:
    """The rules in force, by domain or host, and what they mean together for a host.

    A host obeys the entry of its own name and those of every domain above it. Of numbers the most specific
    wins; exclusions and patterns add up, so that nothing below an excluded domain is asked whatever its own
    entry says; insecure_tls holds for all hosts below its domain.
    """

    def __init__(self, rules: Mapping[str, DomainRules]) -> None:
        self.rules = dict(rules)
        self.rules_for: Callable[[str], DomainRules] = lru_cache(maxsize=65536)(self._rules_for)

    def __reduce__(self) -> tuple[type[PolicyBook], tuple[dict[str, DomainRules]]]:
        return PolicyBook, (self.rules,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PolicyBook) and self.rules == other.rules

    __hash__ = None  # type: ignore[assignment]

    def _rules_for(self, host: str) -> DomainRules:
        found = DomainRules()
        for name in _and_above(host):
            if (entry := self.rules.get(name)) is not None:
                found = _merged(found, entry)
        return found

    def updated(self, newer: PolicyBook) -> PolicyBook:
        """Return these rules with each domain that ``newer`` names replaced by its entry there."""
        return PolicyBook({**self.rules, **newer.rules})

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: domain to its rules, those alone that differ from the default."""
        empty = DomainRules()._asdict()
        return {
            name: {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in rules._asdict().items()
                if value != empty[key]
            }
            for name, rules in sorted(self.rules.items())
        }

    @staticmethod
    def from_json(members: Mapping[str, Any]) -> PolicyBook:
        """Return the book that `to_json` wrote; PolicyError for anything else, as for a policy file."""
        return PolicyBook(_rules_by_name(members))


def _and_above(host: str) -> list[str]:
    """Return the host and the domains above it, most specific first."""
    if is_address(host):
        return [host]
    labels = host.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def _merged(specific: DomainRules, general: DomainRules) -> DomainRules:
    def first(mine: Any, theirs: Any) -> Any:
        return theirs if mine is None else mine

    return DomainRules(
        exclude=specific.exclude or general.exclude,
        exclude_paths=tuple(dict.fromkeys(specific.exclude_paths + general.exclude_paths)),
        min_delay_seconds=first(specific.min_delay_seconds, general.min_delay_seconds),
        round_urls=first(specific.round_urls, general.round_urls),
        total_urls=first(specific.total_urls, general.total_urls),
        max_depth=first(specific.max_depth, general.max_depth),
        priority=first(specific.priority, general.priority),
        insecure_tls=specific.insecure_tls or general.insecure_tls,
    )
