"""Frames to files and back, and what must be known of a frame to trust it.

Parts: cells (the text of one cell) | provenance (the manifest) | places (paths, whole files) | files
(CSV, Parquet, JSON lines) | workbooks (Excel), junit, papers (LaTeX, Markdown) | telemetry (spans to an
OpenTelemetry collector) | inspect_messages, inspect_logs (logs of Inspect's) | archives, reading (runs of
any kind of file).
"""

from .files import read_csv, read_jsonl, read_parquet, to_csv, to_jsonl, to_parquet
from .inspect_logs import to_inspect
from .junit import to_junit
from .papers import to_latex, to_markdown
from .provenance import manifest
from .reading import read_runs
from .telemetry import to_otlp
from .workbooks import to_excel

__all__ = [
    "manifest",
    "read_csv",
    "read_jsonl",
    "read_parquet",
    "read_runs",
    "to_csv",
    "to_excel",
    "to_inspect",
    "to_jsonl",
    "to_junit",
    "to_latex",
    "to_markdown",
    "to_otlp",
    "to_parquet",
]
