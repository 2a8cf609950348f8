"""URLs a second that one core hands out through the two banks of queues."""

from __future__ import annotations

import resource
import time
from heapq import heappop, heappush

from crawler.workbench import Workbench, queue_count


def run(urls: int = 300_000, hosts: int = 5_000, workers: int = 128) -> dict[str, float]:
    """Return hand-outs per second of CPU, one address shared by each ten hosts, on a virtual clock."""
    queues = queue_count(hosts, workers, 5.0, 0.5)
    bench: Workbench[int] = Workbench(queues, levels=4, seed="bench", ip_delay_seconds=0.01)
    names = [f"host{number}.example" for number in range(hosts)]
    for number, name in enumerate(names):
        bench.locate(name, f"192.0.2.{number // 10}")
    began = time.process_time()
    for number in range(urls):
        bench.add(names[number % hosts], number, number * 7 % 4)
    added = time.process_time()
    now, idle, handed = 0.0, workers, 0
    flights: list[tuple[float, str]] = []
    while handed < urls:
        while idle and (grant := bench.acquire(now)) is not None:
            idle -= 1
            handed += 1
            heappush(flights, (now + 0.5, grant.host))
        wake = bench.wake_at()
        if flights and (wake is None or not idle or flights[0][0] <= wake):
            now, host = heappop(flights)
            idle += 1
            bench.release(host, now + 5.0, now)
        elif wake is not None:
            now = wake
    ended = time.process_time()
    return {
        "urls": urls,
        "handed_out_per_second": round(urls / (ended - began)),
        "added_per_second": round(urls / (added - began)),
        "virtual_seconds": round(now, 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


if __name__ == "__main__":
    print(run())
