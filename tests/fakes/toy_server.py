"""The toy web on a loopback socket: one server, virtual hosts by the Host header, and an access log."""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.fakes.toy_web import Reply, ToyWeb

REASONS = {
    200: "OK",
    301: "Moved Permanently",
    304: "Not Modified",
    404: "Not Found",
    410: "Gone",
    500: "Oops",
    503: "Busy",
}


class Access(NamedTuple):
    """One request as the server saw it; instants are epoch seconds."""

    host: str
    path: str
    arrived_at: float
    ended_at: float
    status: int
    agent: str


class ToyServer:
    """Serves a ToyWeb on 127.0.0.1; `log` grows by one Access a request, also written to a file if given."""

    def __init__(self, web: ToyWeb, log_path: Path | None = None) -> None:
        self.web = web
        self.log: list[Access] = []
        self.port = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._file = log_path.open("a", encoding="utf-8") if log_path else None

    async def start(self, port: int = 0) -> asyncio.Server:
        """Listen; `port` is known afterwards."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        self._listening = server
        return server

    async def stop(self) -> None:
        """Stop listening and end every connection."""
        self._listening.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._file:
            self._file.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while True:
                await self._exchange(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        arrived_at = time.time()
        lines = head.decode("latin-1").split("\r\n")
        target = lines[0].split(" ")[1]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
        host = headers.get("host", "").split(":")[0]
        conditions = headers.get("if-none-match"), headers.get("if-modified-since")
        reply = self.web.respond(host, target, *conditions)
        ended_at = arrived_at
        try:
            ended_at = await self._send(writer, reply)
        finally:
            self._record(
                Access(host, target, arrived_at, ended_at, reply.status, headers.get("user-agent", ""))
            )

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> float:
        """Send the reply and return when its last piece left: the client cannot have had it any sooner."""
        lines = [
            f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Status')}",
            f"Content-Type: {reply.content_type}",
        ]
        lines += [f"{name}: {value}" for name, value in reply.headers]
        framing = "Transfer-Encoding: chunked" if reply.chunked else f"Content-Length: {len(reply.body)}"
        ended_at = time.time()
        writer.write(("\r\n".join([*lines, framing]) + "\r\n\r\n").encode("latin-1"))
        pieces = 4 if reply.seconds or reply.chunked else 1
        size = max(1, -(-len(reply.body) // pieces))
        for start in range(0, len(reply.body), size):
            if reply.seconds:
                await asyncio.sleep(reply.seconds / pieces)
            piece = reply.body[start : start + size]
            ended_at = time.time()
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if reply.chunked else piece)
            await writer.drain()
        if reply.chunked:
            ended_at = time.time()
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return ended_at

    def _record(self, access: Access) -> None:
        self.log.append(access)
        if self._file:
            self._file.write(json.dumps(access._asdict()) + "\n")
            self._file.flush()


@contextmanager
def serve(web: ToyWeb, log_path: Path | None = None) -> Iterator[ToyServer]:
    """Run a ToyServer in a thread of this process for the length of a `with` block."""
    server = ToyServer(web, log_path)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever, name="toy-web", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(timeout=5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
        loop.close()


def read_log(path: Path) -> list[Access]:
    """Return the accesses that a server wrote to a log file, in order of their end."""
    return [Access(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Serve until ended; print the port and the seeds as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sites", type=int, default=12)
    parser.add_argument("--pages", type=int, default=8)
    parser.add_argument("--log", type=Path)
    args = parser.parse_args()
    server = ToyServer(ToyWeb(args.seed, args.sites, args.pages), args.log)

    async def run() -> None:
        listening = await server.start(args.port)
        print(json.dumps({"port": server.port, "seeds": server.web.seeds()}), flush=True)
        async with listening:
            await listening.serve_forever()

    asyncio.run(run())


if __name__ == "__main__":
    main()
