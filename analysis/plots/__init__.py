"""Figures: a measure in, a plotly Figure out; no torch, no files, one look (see theme)."""

from analysis.plots.detection import detection_figure
from analysis.plots.layers import layers_figure
from analysis.plots.pareto import pareto_figure
from analysis.plots.projection import projection_figure
from analysis.plots.recompute_map import recompute_map_figure
from analysis.plots.scaling import scaling_figure
from analysis.plots.scatter import scatter_figure
from analysis.plots.staleness import staleness_figure
from analysis.plots.sweep_map import sweep_map_figure
from analysis.plots.timeline import timeline_figure
from analysis.plots.token_map import token_map_figure
from analysis.plots.volatility import volatility_figure

__all__ = [
    "detection_figure",
    "layers_figure",
    "pareto_figure",
    "projection_figure",
    "recompute_map_figure",
    "scaling_figure",
    "scatter_figure",
    "staleness_figure",
    "sweep_map_figure",
    "timeline_figure",
    "token_map_figure",
    "volatility_figure",
]
