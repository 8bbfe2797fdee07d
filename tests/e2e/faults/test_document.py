"""docs/reliability.md says what the fault tests find. Each of them compares its own row; here are the rows as such."""

from __future__ import annotations

import re

import pytest

from seer_otel.config import settings_table

from . import table

pytestmark = pytest.mark.e2e


def test_every_fault_has_a_row_and_every_row_a_fault() -> None:
    """The table holds the faults that are tested, and no others, in their order."""
    tested = [name for module in table.GROUPS for name in table.names(module)]
    assert list(table.read()) == tested
    assert len(set(tested)) == len(tested)


def test_every_module_is_in_the_table() -> None:
    """No fault is left out because its module is."""
    assert {path.name for path in table.HERE.glob("test_*.py") if table.names(path.name)} == set(table.GROUPS)


def test_nothing_is_lost_with_a_spool() -> None:
    """Wherever the spool is on, the table says 0, and every number adds up."""
    for name, row in table.read().items():
        assert row.with_spool is not None, name
        assert row.with_spool.lost == 0, name
        for found in filter(None, (row.without, row.with_spool)):
            assert found.sent + found.held + found.lost == row.retrievals, name


def test_names_in_the_text_exist() -> None:
    """Each variable that the document names is a setting."""
    text = table.DOCUMENT.read_text(encoding="utf-8")
    assert set(re.findall(r"SEER_[A-Z_]+", text)) <= {variable for variable, *_ in settings_table()}
