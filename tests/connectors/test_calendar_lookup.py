"""One URL in the calendar: found in whichever slot it stands, and nowhere else looked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from connectors import calendar
from connectors.calendar_lookup import CalendarLookup
from connectors.files import Storage, open_storage
from connectors.runs import DamagedRun, SealedFile
from connectors.slots import Slot
from schemas.manifest import FileEntry
from schemas.state import UrlState

HOUR = 3600.0
NOW = 480_000 * HOUR
TOP = 1 << 63


def state(number: int, next_fetch_at: float = NOW) -> UrlState:
    host = TOP + number % 50 * 1000
    return UrlState(
        url=f"https://h{host}.example/{number}",
        host_key=host,
        url_key=2**64 - 1 - number * 7,
        status="unfetched",
        next_fetch_at=next_fetch_at,
        depth=1,
        priority=0.5,
        discovered_from=None,
        discovered_round=1,
        discovered_at=NOW,
    )


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def deal(storage: Storage, states: list[UrlState], tiers: list[int]) -> list[FileEntry]:
    return calendar.write_slots(storage, 32, 7, states, NOW, "t", tiers=np.array(tiers), pack_rows=1)


def test_every_url_is_found_with_its_slot_and_round(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calendar, "ROW_GROUP_ROWS", 40)
    states = [state(number, NOW + number % 3 * HOUR) for number in range(300)]
    tiers = [0 if number % 4 else 8 for number in range(300)]
    lookup = CalendarLookup(storage, deal(storage, states, tiers))
    for wanted, tier in zip(states, tiers, strict=True):
        found = lookup.find(wanted.host_key, wanted.url_key)
        assert found is not None
        assert found.state == wanted
        hour = int(wanted.next_fetch_at // HOUR)
        assert found.slot == (Slot(0, 0, 8) if tier else Slot(hour, hour + 1))
        assert found.dealt_in == 7
    assert lookup.find(states[0].host_key, 12345) is None
    assert lookup.find(1, states[0].url_key) is None
    assert CalendarLookup(storage, []).find(1, 1) is None


def test_only_files_whose_keys_admit_the_host_are_opened(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = deal(storage, [state(0)], [0])
    far = calendar.write_slots(storage, 33, 7, [state(1)._replace(host_key=5)], NOW, "t")
    opened: list[str] = []
    original = SealedFile.__init__

    def opening(self: SealedFile, given: Storage, entry: FileEntry) -> None:
        opened.append(entry.path)
        original(self, given, entry)

    monkeypatch.setattr(SealedFile, "__init__", opening)
    assert CalendarLookup(storage, [*near, *far]).find(state(0).host_key, state(0).url_key) is not None
    assert set(opened) == {near[0].path}


def test_a_damaged_file_is_named(storage: Storage) -> None:
    (entry,) = deal(storage, [state(0)], [0])
    file = Path(storage.root) / entry.path
    data = bytearray(file.read_bytes())
    data[-30] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedRun, match=entry.path):
        CalendarLookup(storage, [entry]).find(state(0).host_key, state(0).url_key)
