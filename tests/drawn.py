"""What is on a figure: the dots, lines, bars and texts that the tests of figures compare."""

from __future__ import annotations

from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba

WHITE = to_rgba("white")


def dots(ax):
    """Label, position, and whether it is filled, of each dot; those of a key have no place."""
    found = [c for c in ax.collections if isinstance(c, PathCollection) and len(c.get_offsets())]
    return [(c.get_label(), *c.get_offsets()[0].tolist(), tuple(c.get_facecolor()[0]) != WHITE) for c in found]


def colours_of(ax):
    """The colour of each dot's edge by its label."""
    found = [c for c in ax.collections if isinstance(c, PathCollection)]
    return {c.get_label(): tuple(c.get_edgecolor()[0][:3]) for c in found if len(c.get_offsets())}


def intervals(ax, axis=0):
    """Both ends of each line that lies along `axis`."""
    lines = [segment for c in ax.collections if isinstance(c, LineCollection) for segment in c.get_segments()]
    return [line[:, axis].tolist() for line in lines if line[0, 1 - axis] == line[1, 1 - axis]]


def curves(ax):
    """The points of each named curve."""
    named = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    return {label: (list(line.get_xdata()), list(line.get_ydata())) for label, line in named.items()}


def bars(ax):
    """Label, line and width of each part of a bar."""
    return [
        (bar.get_label(), round(part.get_y() + part.get_height() / 2, 6), part.get_width())
        for bar in ax.containers
        for part in bar
    ]


def said(ax):
    """Every text that a reader of the figure sees, as an artist."""
    found = []
    for one in [ax, *ax.child_axes]:
        legend = one.get_legend()
        found += [*one.texts, one.title, *(legend.get_texts() if legend else [])]
        if one.axison:
            found += [one.xaxis.label, one.yaxis.label]
            for axis in (one.xaxis, one.yaxis):
                low, high = sorted(axis.get_view_interval())
                found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def words(ax):
    return [text.get_text() for text in said(ax)]


def assert_readable(ax):
    """Nothing is cut off, no name covers another, and the type is no smaller than 5 points."""
    figure = ax.figure
    figure.canvas.draw()
    whole = figure.bbox
    for text in said(ax):
        box = text.get_window_extent()
        assert box.x0 >= whole.x0 - 1 and box.x1 <= whole.x1 + 1, text.get_text()
        assert box.y0 >= whole.y0 - 1 and box.y1 <= whole.y1 + 1, text.get_text()
        assert text.get_size() >= 5
    for one in [ax, *ax.child_axes]:
        for labels in (one.get_yticklabels(), one.get_xticklabels()):
            boxes = [label.get_window_extent() for label in labels if label.get_text() and one.axison]
            shrunk = [box.shrunk(0.9, 0.9) for box in boxes]
            assert not any(a.overlaps(b) for i, a in enumerate(shrunk) for b in shrunk[:i]), [
                label.get_text() for label in labels
            ]
    legend = ax.get_legend()
    if legend:
        box = legend.get_window_extent()
        assert box.x0 >= whole.x0 - 1 and box.y1 <= whole.y1 + 1
    height = ax.get_window_extent().height / figure.dpi
    assert height > 0.15, f"{height} inches are left for the figure itself"
