"""Arguments as arrays of numbers, with errors that name the argument."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LARGEST = 1e100
# Above, not every integer is a float.
_LARGEST_EXACT = 2**53


def array(what: str, values: ArrayLike, dimensions: int) -> NDArray[Any]:
    """The numbers of an argument as an array with this number of dimensions."""
    try:
        found = np.asarray(values)
    except ValueError:
        raise ValueError(f"{what} has rows of different lengths; give an array with {dimensions} dimensions") from None
    if found.dtype.kind not in "iufb":
        expected = "numbers of at most 64 bits" if found.dtype.kind == "O" else "numbers"
        raise TypeError(f"{what} has values of type {found.dtype}; give {expected}")
    if found.ndim != dimensions:
        raise ValueError(f"{what} has {found.ndim} dimensions; give an array with {dimensions}")
    return found


def numbers(what: str, values: ArrayLike, dimensions: int, length: int | None = None) -> NDArray[np.float64]:
    """Finite numbers that are not negative."""
    # Larger floats become infinite, which is refused.
    with np.errstate(over="ignore"):
        found = np.asarray(array(what, values, dimensions), dtype=np.float64, order="C")
    check_length(what, found, length)
    wrong = np.asarray(~((found >= 0) & (found <= _LARGEST)))
    refuse(what, found, wrong, f"numbers from 0 to {_LARGEST:g}")
    return found


def loads(weight: ArrayLike) -> NDArray[np.float64]:
    """The loads of experts: a row per layer."""
    table = numbers("weight", weight, 2)
    if table.size == 0:
        rows, columns = table.shape
        raise ValueError(f"weight has {rows} layers of {columns} experts; give the load of at least one expert")
    return table


def integers(
    what: str,
    values: ArrayLike,
    dimensions: int,
    length: int | None = None,
    entry: Callable[[int], str] | None = None,
) -> NDArray[np.int64]:
    """Whole numbers that are not negative. `entry` names the number at a position for errors."""
    found = array(what, values, dimensions)
    check_length(what, found, length)
    most = np.iinfo(np.int64).max
    expected = f"whole numbers from 0 to {most}"
    if found.dtype.kind == "f":
        # Floats of 16 bits cannot be compared with the limit.
        found = found.astype(np.promote_types(found.dtype, np.float64))
        with np.errstate(invalid="ignore"):
            wrong = ~((found >= 0) & (found <= _LARGEST_EXACT) & (np.floor(found) == found))
        expected = f"whole numbers from 0 to {_LARGEST_EXACT}, or up to {most} with an integer type"
    else:
        wrong = (found < 0) | (found > most)
    refuse(what, found, wrong, expected, entry)
    return np.asarray(found, dtype=np.int64, order="C")


def refuse(
    what: str, found: NDArray[Any], wrong: NDArray[Any], expected: str, entry: Callable[[int], str] | None = None
) -> None:
    """Raises an error for the first wrong number."""
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"[{', '.join(map(str, at))}]" if at else ""
        name = f"{what}{place}" if entry is None else entry(at[0])
        raise ValueError(f"{name} is {found[at]}; give {expected}")


def check_length(what: str, found: Sized, length: int | None) -> None:
    """Checks the length of a list with an entry for each task, object or PE."""
    if length is not None and len(found) != length:
        raise ValueError(f"{what} has {len(found)} entries and {length} are needed; give one for each")


def number(what: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """A whole number from `least` to `most`."""
    try:
        found = int(value)
        if found != value or isinstance(value, bool | np.bool_):
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{what} is {value!r}; give a whole number") from None
    if found < least:
        raise ValueError(f"{what} is {found}; give a number of at least {least}")
    if found > most:
        raise ValueError(f"{what} is {found}; give a number of at most {most}")
    return found


def seed(value: Any) -> int:
    """The seed of the random number generator, which has 64 bits."""
    return number("seed", value, 0, 2**64 - 1)


def needs(name: str, value: Any, others: dict[str, Any]) -> None:
    """Refuses an argument that has no effect without others."""
    missing = [other for other, given in others.items() if given is None]
    if value is not None and missing:
        raise ValueError(f"{name} has no effect without {' and '.join(missing)}; give {'it' if len(missing) == 1 else 'them'}, or leave {name} out")
