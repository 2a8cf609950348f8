"""State as immutable sorted runs: Parquet files of (k1, k2, values), probed and merged within a partition.

One module for URL-seen, content digests, signature bands, sketches, hosts and robots: ``RunTable``
says what a repeated key means. A run is written once, named by a manifest, and never changed. Measured in
docs/adr/0013-url-seen.md.
"""

from connectors.runs.compaction import Merge, plan_compaction
from connectors.runs.keys import Keys, Mask
from connectors.runs.lookup import Found, lookup
from connectors.runs.merging import merge_runs, scan
from connectors.runs.probe import KeyProbe, contains_one, probe_new
from connectors.runs.reading import RunReader
from connectors.runs.sealing import (
    DamagedRun,
    SealedFile,
    checked_footer,
    publish_sealed,
    seal_footer,
    verify,
)
from connectors.runs.table import MULTI, NEWEST_WINS, REMOVED, SET, RunTable, oldest_first, round_of
from connectors.runs.writing import RunWriter, write_run

__all__ = [
    "MULTI",
    "NEWEST_WINS",
    "REMOVED",
    "SET",
    "DamagedRun",
    "Found",
    "KeyProbe",
    "Keys",
    "Mask",
    "Merge",
    "RunReader",
    "RunTable",
    "RunWriter",
    "SealedFile",
    "checked_footer",
    "contains_one",
    "lookup",
    "merge_runs",
    "oldest_first",
    "plan_compaction",
    "probe_new",
    "publish_sealed",
    "round_of",
    "scan",
    "seal_footer",
    "verify",
    "write_run",
]
