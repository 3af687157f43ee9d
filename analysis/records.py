"""Records of measurement files: their fields checked by the dataclass that they become."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")
# Nothing that is measured comes near it, and quotients of two such numbers stay finite.
LARGEST = 1e100


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def record(kind: type[T], data: Any) -> T:
    """A dataclass from its fields as JSON holds them. Raises ValueError naming the first wrong one."""
    check_numbers(data)
    hashable: Any = kind
    try:
        made: T = _adapter(hashable).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from None
    return made


def check_numbers(data: Any, name: str = "") -> None:
    """Raise ValueError naming the first number that no measurement gives: it would break whoever reckons.

    Allowed are whole numbers of 64 bits and others below 1e100 either way; a NaN stays what is not known.
    """
    if isinstance(data, Mapping):
        for key, value in data.items():
            check_numbers(value, f"{name}.{key}" if name else str(key))
    elif isinstance(data, list | tuple):
        for value in data:
            check_numbers(value, name)
    elif isinstance(data, int) and not -(2**63) <= data < 2**63:
        raise ValueError(f"{name} is a number of {data.bit_length()} bits; allowed: up to 63")
    elif isinstance(data, float) and abs(data) > LARGEST:
        raise ValueError(f"{name} is {data}; allowed: up to {LARGEST:g}")
