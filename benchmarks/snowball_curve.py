"""The power curve of the snowball detector as SVG, written by hand: no browser is needed for it."""

from analysis.alarms import wilson
from analysis.theme import FLAWED, GRID, INK, MUTED

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 616, 56, 304
STRONG_POINTS = 15  # of the marked share by the end, at strength 1


def power_curve(points: list[tuple[float, float, int]]) -> str:
    """Share of worlds found a snowball, by strength. points: strength, share, worlds."""
    marks = [_mark(*point) for point in points]
    line = " ".join(f"{_x(strength):.1f},{_y(share):.1f}" for strength, share, _ in points)
    grid = [
        _across(share, GRID) + _text(LEFT - 8, _y(share) + 4, f"{share:.0%}", "end", MUTED)
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    ticks = [
        _text(_x(points_ / STRONG_POINTS), BOTTOM + 20, f"{points_}", "middle", MUTED)
        for points_ in (0, 5, 10, STRONG_POINTS)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            _text(16, 24, "How often does the detector find a planted snowball?", "start", INK, 16),
            _text(
                16, 42, "5 arms, 5 seeds, every confounder on; bar: 98 % interval", "start", MUTED
            ),
            *grid,
            _limit(0.05, "at most 5 % where there is none"),
            _limit(0.9, "at least 90 % where it is strong"),
            *ticks,
            f'<polyline points="{line}" fill="none" stroke="{FLAWED}" stroke-width="2"/>',
            *marks,
            _text(
                (LEFT + RIGHT) / 2,
                HEIGHT - 12,
                "points that it adds to the marked share by the end (5 is weak, 15 strong)",
                "middle",
                INK,
            ),
            "</svg>",
            "",
        ]
    )


def _x(strength: float) -> float:
    return LEFT + 24 + strength * (RIGHT - LEFT - 48)


def _y(share: float) -> float:
    return BOTTOM - share * (BOTTOM - TOP)


def _mark(strength: float, share: float, worlds: int) -> str:
    _, low, high = wilson(round(share * worlds), worlds)
    x = f"{_x(strength):.1f}"
    return (
        f'<line x1="{x}" x2="{x}" y1="{_y(low):.1f}" y2="{_y(high):.1f}" stroke="{FLAWED}"/>'
        f'<circle cx="{x}" cy="{_y(share):.1f}" r="4" fill="{FLAWED}"/>'
    )


def _across(share: float, colour: str, dashes: str = "none") -> str:
    y = f"{_y(share):.1f}"
    return (
        f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}" stroke="{colour}" '
        f'stroke-dasharray="{dashes}"/>'
    )


def _limit(share: float, meaning: str) -> str:
    at, anchor = (RIGHT - 4, "end") if share < 0.5 else (LEFT + 4, "start")
    return _across(share, MUTED, "4 4") + _text(at, _y(share) - 5, meaning, anchor, MUTED)


def _text(x: float, y: float, text: str, anchor: str, colour: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size}">{text}</text>'
    )
