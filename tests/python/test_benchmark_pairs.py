"""Ratios of pairs in the benchmarks of Spark: medians, intervals, and what is said of a bar."""

from __future__ import annotations

from benches.spark import pairs


def test_a_ratio_is_taken_within_each_pair():
    assert pairs.ratio([2.0, 30.0, 4.0], [1.0, 10.0, 4.0]).median == 2.0


def test_pairs_that_agree_leave_no_interval():
    assert pairs.ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]) == (2.0, 2.0, 2.0)


def test_the_interval_of_fifteen_values_ends_at_the_fourth_or_fifth_from_either_end():
    # In a sample drawn from 15 values, the median is one of the first four with a probability of 2.54 %.
    median, low, high = pairs.median([float(value) for value in range(1, 16)])
    assert (median, low in (4.0, 5.0), high in (11.0, 12.0)) == (8.0, True, True)


def test_the_interval_is_the_same_in_every_run():
    values = [1.0, 1.3, 0.9, 1.2, 1.7]
    assert pairs.median(values) == pairs.median(values)


def test_a_bar_is_reached_at_its_figure_and_missed_a_tenth_above_it():
    bars = [
        {"what": "one", "at_most": 1.05, "found": [1.05, 1.0, 1.1]},
        {"what": "other", "at_most": 1.05, "found": [1.17, 1.0, 1.2], "by_cpu": [1.02, 1.01, 1.03]},
    ]
    lines = [" ".join(line.split()) for line in pairs.verdicts(bars)]
    assert lines[1:] == [
        "1.05 1.05 1.00 to 1.10 reached: one",
        "1.05 1.17 1.00 to 1.20 missed: other; by CPU time 1.02 (1.01 to 1.03)",
    ]
