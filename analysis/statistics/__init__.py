"""What SQL is bad at: intervals, tests, power. Pure numpy, seeds explicit, one idea a file."""

from analysis.statistics.bootstrap import REPLICATES, Bootstrap
from analysis.statistics.holm import holm_levels
from analysis.statistics.interquartile import InterquartileMean, bootstrap_iqm, iqm
from analysis.statistics.means import bootstrap_mean
from analysis.statistics.permutation import permutation_p
from analysis.statistics.ranking import AUROC_REPLICATES, auroc, bootstrap_auroc
from analysis.statistics.samples import avg_at_k, pass_at_k
from analysis.statistics.spread import Spread
from analysis.statistics.trends import Trend, bootstrap_trend, mann_kendall
from analysis.statistics.votes import maj_at_k
from analysis.statistics.weights import Floats, draw_weights, widen

__all__ = [
    "AUROC_REPLICATES",
    "REPLICATES",
    "Bootstrap",
    "Floats",
    "InterquartileMean",
    "Spread",
    "Trend",
    "auroc",
    "avg_at_k",
    "bootstrap_auroc",
    "bootstrap_iqm",
    "bootstrap_mean",
    "bootstrap_trend",
    "draw_weights",
    "holm_levels",
    "iqm",
    "maj_at_k",
    "mann_kendall",
    "pass_at_k",
    "permutation_p",
    "widen",
]
