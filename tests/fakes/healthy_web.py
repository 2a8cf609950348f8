"""A web of well-behaved pages, each with a text of its own."""

from __future__ import annotations

from tests.fakes.rogues.model import words
from tests.fakes.toy_web import Reply


class HealthyWeb:
    """``hosts`` hosts with ``pages`` pages each; every other address is 404."""

    def __init__(self, hosts: int, pages: int) -> None:
        self.hosts = [f"www.healthy{number}.example" for number in range(hosts)]
        self._pages = {
            f"http://{host}/{number}.html": self._page(f"{host} {number}")
            for host in self.hosts
            for number in range(pages)
        }

    def urls(self) -> list[str]:
        """Return the URL of every page."""
        return list(self._pages)

    def respond(self, host: str, target: str, *conditions: str | None) -> Reply:
        """Return the reply to GET ``target`` on ``host``."""
        return self._pages.get(f"http://{host}{target}", Reply(404, b"not here", "text/plain"))

    @staticmethod
    def _page(name: str) -> Reply:
        text = words(name, 200)
        return Reply(
            200, f"<html><title>{name}</title><body><main><p>{text}</p></main></body></html>".encode()
        )
