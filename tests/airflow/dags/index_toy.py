"""A DAG as an indexer would write it: it runs when the crawl's tables have grown."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, Asset, task


@task
def index(triggering_asset_events=None) -> None:
    events = [event for found in (triggering_asset_events or {}).values() for event in found]
    with Path(os.environ["INDEX_LOG"]).open("a") as log:
        log.write(f"{len(events)} {os.environ['TABLES_ASSET']}\n")


with DAG(
    "index_toy", schedule=[Asset(os.environ["TABLES_ASSET"])], start_date=datetime(2026, 1, 1, tzinfo=UTC)
) as dag:
    index()
