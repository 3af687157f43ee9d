"""Figures from fixed traces: what is drawn is what was measured, in both looks, and nothing draws nothing."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest

from analysis import Trace
from analysis.correlation import correlate, detect, drift_pairs
from analysis.drift import drift
from analysis.plots import (
    detection_figure,
    layers_figure,
    projection_figure,
    recompute_map_figure,
    scatter_figure,
    timeline_figure,
    token_map_figure,
    volatility_figure,
)
from analysis.plots.scatter import coefficient_text
from analysis.plots.theme import LOOK
from analysis.projection import project
from analysis.ranks import spearman
from analysis.timeline import timeline
from analysis.volatility import volatility
from tests.analysis.made_traces import ENTROPY, GEN, following, made_trace, pairs_of


@pytest.fixture
def watched() -> Trace:
    return made_trace(ENTROPY, following(ENTROPY))


def all_figures(trace: Trace) -> list[go.Figure]:
    pairs = drift_pairs([trace])
    line = timeline(trace)
    return [
        timeline_figure(line),
        recompute_map_figure(line, "share"),
        recompute_map_figure(line, "age"),
        scatter_figure(pairs, correlate(pairs, ["max_entropy"]), threshold=0.5),
        volatility_figure(volatility([trace]), recent=8),
        layers_figure(drift(trace)),
        detection_figure([detect(pairs)], 0.5),
    ]


def test_every_figure_is_titled_and_valid_json(watched: Trace) -> None:
    for figure in all_figures(watched):
        assert figure.layout.title.text
        assert figure.layout.xaxis.title.text is not None
        json.loads(figure.to_json())


def test_timeline_bars_are_the_rows_of_full_and_partial_steps(trace: Trace) -> None:
    figure = timeline_figure(timeline(trace))
    full, partial = figure.data[:2]
    assert (list(full.x), list(full.y)) == ([1], [7])
    assert list(partial.x) == [2, 3, 4]
    assert list(figure.data[2].y) == pytest.approx([0.1, 0.4, 0.7, 1.0])


@pytest.mark.parametrize("full", [{0}, {0, 6, 23}, {0, 1, 23}, set(range(GEN))])
def test_no_bar_of_the_timeline_covers_its_neighbour(full: set[int], watched: Trace) -> None:
    """Left to plotly, bars of steps that lie 6 apart are 6 steps wide."""
    steps = [replace(step, full=step.step in full) for step in watched.steps]
    bars = timeline_figure(timeline(replace(watched, steps=tuple(steps)))).data[:2]
    ends = sorted((x - bar.width / 2, x + bar.width / 2) for bar in bars for x in bar.x)
    assert len(ends) == GEN
    assert all(left[1] < right[0] for left, right in pairwise(ends))
    assert all(end - begin > 0.5 for begin, end in ends)


def test_the_timelines_axis_fits_its_steps_and_keeps_room_only_where_asked(trace: Trace) -> None:
    assert len(trace.steps) == 4
    for room, last in ((0, 4), (3, 4), (12, 12)):
        layout = timeline_figure(timeline(trace), room=room).layout
        assert layout.xaxis.range == layout.xaxis2.range == (0.4, last + 0.6)


def test_every_figure_over_steps_counts_them_from_one(watched: Trace) -> None:
    over_steps = [
        timeline_figure(timeline(watched)),
        recompute_map_figure(timeline(watched)),
        recompute_map_figure(timeline(watched), "age"),
        token_map_figure(watched),
        projection_figure(project(watched, 0.5, 8)),
    ]
    for figure in over_steps:
        drawn = np.concatenate([np.array(trace.x) for trace in figure.data if trace.x is not None])
        assert (drawn.min(), drawn.max()) == (1, len(watched.steps)), figure.layout.title.text
    pairs = drift_pairs([watched])
    points = scatter_figure(pairs, correlate(pairs, ["max_entropy"])).data[0].customdata
    assert [point[0] for point in points] == [step + 1 for step in pairs.step]


def test_a_finite_threshold_is_marked_and_an_infinite_one_is_not(trace: Trace) -> None:
    assert not timeline_figure(timeline(trace)).layout.shapes
    config = {"name": "entropy", "config": {"entropy_threshold": 0.5}}
    marked = timeline_figure(timeline(replace(trace, policy=config)))
    assert [shape.y0 for shape in marked.layout.shapes] == [0.5]


def test_scatter_holds_the_pairs_and_says_both_coefficients(watched: Trace) -> None:
    pairs = drift_pairs([watched])
    busy = replace(pairs, signals={**pairs.signals, "num_committed": np.arange(len(pairs.drift)) % 3.0})
    figure = scatter_figure(busy, correlate(busy, ["max_entropy"]))
    kept = pairs.drift > 0
    np.testing.assert_allclose(np.array(figure.data[0].y)[kept], pairs.drift[kept])
    said = figure.layout.title.text
    assert "Spearman +1.00" in said
    assert "given the number committed" in said
    assert "given the step" in said
    assert "answer" not in said


def test_points_after_the_answer_are_drawn_and_told_apart(watched: Trace) -> None:
    ended = replace(watched, tokens=(*watched.tokens[:15], *([1] * 9)))
    pairs = drift_pairs([ended])
    figure = scatter_figure(pairs, correlate(pairs, ["max_entropy"]))
    inside, after = figure.data
    assert (len(inside.x), len(after.x)) == (15, 8)
    assert inside.marker.symbol != after.marker.symbol
    said = figure.layout.title.text
    assert "within the answer: Spearman" in said
    assert "n = 15 steps of this run" in said
    assert "all 23 steps: Spearman" in said
    assert "8 of these (35%) only fill in what follows the end of the text" in said
    assert said.count("given the step") == 2


def test_values_that_an_axis_has_no_place_for_are_counted(watched: Trace) -> None:
    still = following(ENTROPY)
    still[3:6] = 0
    trace = made_trace(ENTROPY, still, age_drift=lambda age: 0.0 if age > 9 else 0.5)
    pairs = drift_pairs([trace])
    figure = scatter_figure(pairs, correlate(pairs, ["max_entropy"]))
    hidden = int(np.isnan(np.array(figure.data[0].y, float)).sum())
    assert f"{hidden} of 23 steps at exactly 0 not drawn" in figure.layout.title.text
    nothing = made_trace(ENTROPY, np.zeros(GEN))
    assert "8 of 10 at exactly 0 not drawn" in layers_figure(drift(nothing)).layout.yaxis.title.text
    assert "not drawn" not in layers_figure(drift(watched)).layout.yaxis.title.text


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.6, 0.7, 0.9, 1.0])
def test_the_working_point_is_that_of_the_rule(threshold: float) -> None:
    values, moved = np.array([0.6, 0.9, 0.6, 0.3]), np.array([2.0, 2.0, 1.0, 1.0])
    pairs = pairs_of(values, moved)
    point = detection_figure([detect(pairs, top_share=0.5)], threshold).data[-1]
    above = values > threshold
    assert (point.y[0], point.x[0]) == (above[:2].mean(), above[2:].mean())


def test_a_signal_that_never_varies_is_no_curve_and_takes_no_working_point(watched: Trace) -> None:
    pairs = drift_pairs([watched])
    found = [detect(pairs, name) for name in ("num_committed", "since_full", "max_doubt", "max_entropy")]
    *curves, chance, point = detection_figure(found, 0.5).data
    assert [curve.name.split(" ")[1] for curve in curves] == ["doubt", "entropy"]
    assert (chance.name, point.name) == ("chance", "τ = 0.5")
    assert detection_figure(found[:3], 0.5).data[-1].name == "chance", "tau is a threshold of entropy"
    assert f"{found[3].area:.2f}" in curves[-1].name
    assert not detection_figure(found[:2], 0.5).data


def test_an_area_stands_with_its_interval() -> None:
    found = detect(pairs_of(*np.random.default_rng(6).normal(size=(2, 150))))
    assert f"[{found.low:.2f}, {found.high:.2f}]" in detection_figure([found]).data[0].name


def test_recompute_map_draws_the_canvas_by_step(trace: Trace) -> None:
    figure = recompute_map_figure(timeline(trace))
    assert np.shape(figure.data[0].z) == (7, 4)
    assert list(figure.data[1].y) == [3, 4, 5, 6]
    drawn, colours = np.array(figure.data[0].z), figure.data[0].colorscale
    full = timeline(trace).full
    assert set(drawn[:, full].ravel()) <= {0, 2}
    assert drawn[:, ~full].max() <= 1
    for most, colour in ((1, LOOK.partial), (2, LOOK.full)):
        # Of stops at the same height the last one counts.
        assert [found for height, found in colours if height <= most / figure.data[0].zmax][-1] == colour
    with pytest.raises(ValueError, match="show"):
        recompute_map_figure(timeline(trace), "heat")


def test_an_unknown_coefficient_is_said_not_to_be_measured() -> None:
    assert coefficient_text("rho", spearman(np.ones(9), np.arange(9.0))) == "rho not measured (n = 9)"


def test_a_run_without_steps_gives_figures_that_say_so(watched: Trace) -> None:
    early = replace(watched, steps=watched.steps[:1])
    pairs = drift_pairs([early])
    figures = [
        timeline_figure(timeline(replace(watched, steps=()))),
        recompute_map_figure(timeline(replace(watched, steps=()))),
        scatter_figure(pairs, correlate(pairs)),
        volatility_figure(volatility([early])),
        layers_figure(drift(early)),
        detection_figure([detect(pairs)]),
    ]
    for figure in figures:
        assert figure.layout.annotations[0].text
