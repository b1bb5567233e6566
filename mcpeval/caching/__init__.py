"""The cache: every paid-for answer is kept, and never paid for twice.

A folder with one SQLite database, written through diskcache.  Values are JSON (zlib level 1) and
nothing else: no pickle is written or read and no file beside the database is, whatever a database
from elsewhere says.  Nothing is ever evicted.  Keys are content (`content_key`), so the caches of
several machines merge by union: `Cache.export` and `Cache.load`.

Layers: keys (JSON text and keys) | store (diskcache, made safe) | cache (`Cache`, `open_cache`).
"""

from .cache import MISSING, Cache, open_cache
from .keys import SCHEMA_VERSION, canonical, content_key

__all__ = ["MISSING", "SCHEMA_VERSION", "Cache", "canonical", "content_key", "open_cache"]
