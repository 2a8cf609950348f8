"""What must be right before a round may touch the network."""

from __future__ import annotations

from connectors.connect_to import ConnectTo
from connectors.dns import parse_nameservers
from connectors.rounds import CrawlFolder
from crawler.addresses import classify
from crawler.hosts import is_address
from crawler.urls import host_of
from runners.options import UsageError
from schemas.flags import CrawlFlags


def check_network_flags(flags: CrawlFlags) -> ConnectTo:
    """Return the --connect_to rules; raise UsageError for a bad rule or name server."""
    try:
        parse_nameservers(flags.nameservers)
        return ConnectTo.parse(flags.connect_to)
    except ValueError as error:
        raise UsageError(str(error)) from error


def check_contact(folder: CrawlFolder, flags: CrawlFlags) -> None:
    """Raise UsageError when strangers' servers could be asked without saying who asks.

    No contact is needed when a --connect_to rule pins every connection, or when every seed is loopback; a
    public address met all the same is then refused by the fetcher.
    """
    rules = check_network_flags(flags)
    if flags.contact or rules.pins_every_host or _all_seeds_are_loopback(folder):
        return
    raise UsageError(
        "--contact is missing: give a web page or mailto: address at which webmasters reach you, "
        "such as --contact=https://example.org/bot"
    )


def _all_seeds_are_loopback(folder: CrawlFolder) -> bool:
    hosts = {
        host_of(seed["url"])
        for path in folder.inject_paths()
        for seed in folder.read_inject(path).get("seeds", ())
    }
    return all(_is_loopback(host) for host in hosts)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return is_address(host) and classify(host) == "loopback"
