"""Pages to look at: one run, the report of an experiment, and what one that is running has come to.

Each is one HTML file that needs nothing else, in which what models and tools wrote is only ever text.

Parts: elements (HTML by construction) | shell (`Page`) | steps, verdicts, images, timeline,
conversation (`transcript`) | drawings, sections, packing, writing (`report`) | watching, serving
(`serve`).
"""

from .conversation import transcript
from .serving import Dashboard, serve
from .shell import Page
from .writing import report

__all__ = ["Dashboard", "Page", "report", "serve", "transcript"]
