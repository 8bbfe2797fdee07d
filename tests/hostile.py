"""Values that no attribute should have, and that a processor which replaces attributes may leave behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Fails:
    """Whatever it is asked, it raises."""

    def _fail(self, *args: object) -> Any:
        raise RuntimeError("this object has no answer")

    def __repr__(self) -> str:
        return "Fails()"

    __str__ = __eq__ = __hash__ = __len__ = __bool__ = __iter__ = __getitem__ = _fail  # type: ignore[assignment]


class Lies(Mapping[str, Any]):
    """A mapping that promises a query and documents, and has neither."""

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[str]:
        return iter(("query", "documents", "content"))

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)
