"""What README.md says of the code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import seer_otel

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """`scripts/readme.py` as a module."""
    spec = importlib.util.spec_from_file_location("readme", ROOT / "scripts" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_parts_are_those_of_the_code(script: ModuleType) -> None:
    """The settings table and the request in README.md are what the code gives now."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert script.rendered(text) == text


def test_names_in_the_readme_exist() -> None:
    """Each `seer_otel.name` in README.md is exported, or is one of our metadata keys."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    marks = {
        "passages_cut",
        "texts_cut",
        "attributes_dropped",
        "partial",
        "final",
        "sample_rate",
        "sampled_by",
    }
    named = set(re.findall(r"\bseer_otel\.([A-Za-z_]+)", text))
    assert named - marks <= set(seer_otel.__all__)


def test_files_that_the_documents_link_to_exist() -> None:
    """Each relative link in README.md, CONTRIBUTING.md and docs/ leads to a file."""
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / link).exists(), f"{document.name} links to {link}"
