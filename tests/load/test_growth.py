"""The work of functions and parsers grows in proportion to their input."""

from __future__ import annotations

import pytest

from tests.load import (
    growth,
    growth_cases,  # noqa: F401
)

pytestmark = pytest.mark.full


@pytest.mark.timeout(1800)
def test_doubled_input_takes_about_double_work() -> None:
    grown = growth.measure(list(growth.cases))
    print(growth.table(grown))
    assert len(grown) >= 60
    assert [case for case in grown if max(case.factors) > growth.MOST] == []
