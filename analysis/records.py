"""Records of measurement files: their fields checked by the dataclass that they become."""

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def record(kind: type[T], data: Any) -> T:
    """A dataclass from its fields as JSON holds them. Raises ValueError naming the first wrong one."""
    hashable: Any = kind
    try:
        made: T = _adapter(hashable).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from None
    return made
