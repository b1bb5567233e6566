"""Frames to files and back, and what must be known of a frame to trust it.

`files` writes and reads CSV and Parquet, `cells` is the text of one cell, `provenance` the manifest.
"""

from .files import read_csv, read_parquet, read_runs, to_csv, to_parquet
from .provenance import manifest

__all__ = ["manifest", "read_csv", "read_parquet", "read_runs", "to_csv", "to_parquet"]
