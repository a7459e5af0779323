"""`Frozen` beside a dataclass of the same fields: the first values, and those after the class has
got a generated `__init__`."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import pkgutil
from importlib import import_module

import pytest

import sbbf_tool
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen, field, replace


class Ours(Frozen):
    a: int
    b: str = "x"
    c: int = field(default=3, compare=False, local=True)
    d: list[int] = field(factory=list, repr=False)
    e: bool = field(default=False, kw_only=True)

    def ensure_valid(self) -> None:
        if self.a < 0:
            raise UsageError("a must not be negative")


class Longer(Ours):
    f: int = 5


@dataclasses.dataclass(frozen=True)
class Theirs:
    a: int
    b: str = "x"
    c: int = dataclasses.field(default=3, compare=False, metadata={"local": True})
    d: list[int] = dataclasses.field(default_factory=list, repr=False)
    e: bool = dataclasses.field(default=False, kw_only=True)


@pytest.mark.parametrize("values_before", [0, 200])
def test_a_value_behaves_as_that_of_a_dataclass(values_before):
    for number in range(values_before):
        Ours(number)
    for values, named in (
        ((1,), {}),
        ((1, "y", 4, [2]), {"e": True}),
        ((), {"b": "z", "a": 7}),
        ((2, "y"), {"d": [1]}),
    ):
        ours, theirs = Ours(*values, **named), Theirs(*values, **named)
        assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
        assert dataclasses.asdict(ours) == dataclasses.asdict(theirs) == vars(ours)
        assert (
            pickle.loads(pickle.dumps(ours))
            == ours
            == replace(ours, c=9)
            == dataclasses.replace(ours, c=8)
            != replace(ours, a=9)
        )
        assert Longer(*values, **named).f == 5
        assert Longer(*values, **named) != ours
    for values, named in (
        ((), {}),
        ((1,), {"a": 1}),
        ((1,), {"z": 1}),
        ((1, "y", 3, [], True), {}),
        ((), {"z": 1}),
    ):
        with pytest.raises(TypeError):
            Ours(*values, **named)
    with pytest.raises(UsageError, match="negative"):
        Ours(-1)
    with pytest.raises(AttributeError, match="immutable"):
        Ours(1).a = 2
    assert [(each.name, each.metadata["local"]) for each in dataclasses.fields(Longer)][2::3] == [
        ("c", True),
        ("f", False),
    ]
    assert hash(Longer(1, d=(), f=2)) == hash(Longer(1, d=(), f=2, c=7))
    assert [*inspect.signature(Longer).parameters] == ["a", "b", "c", "d", "f", "e"]


def test_every_class_can_become_a_dataclass():
    """As it does after many values: a default that may change, for example, is refused only
    then."""
    for module in pkgutil.walk_packages(sbbf_tool.__path__, "sbbf_tool."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    kinds = list(Frozen.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert [each.name for each in dataclasses.fields(kind)] == list(kind._fields)
    assert len(kinds) > 100
