"""The snowball detector, one part a file; `verdict` has the rule."""

from analysis.snowball.finding import SnowballFinding, snowball_finding
from analysis.snowball.verdict import QUERIES, Snowball, ask, detect

__all__ = ["QUERIES", "Snowball", "SnowballFinding", "ask", "detect", "snowball_finding"]
