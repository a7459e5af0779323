"""Immutable values of named fields, without generated code: `@dataclass` takes up to a millisecond
of each start for every class.

To type checkers a subclass of `Frozen` is a frozen dataclass, and `dataclasses.fields`, `asdict`
and `replace` take it for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

if TYPE_CHECKING:
    import dataclasses

F = TypeVar("F", bound="Frozen")

_set = object.__setattr__

_MANY = 100
"""After as many values, a class gets the `__init__` of a dataclass: making that takes as long as it
saves for these."""


class Field:
    """A field: its default, and what is special about it."""

    def __init__(
        self,
        default: Any = ...,
        *,
        factory: Callable[[], Any] | None = None,
        convert: Callable[[Any], Any] | None = None,
        compare: bool = True,
        repr: bool = True,
        local: bool = False,
        kw_only: bool = False,
    ) -> None:
        self.default = default
        self.factory = factory
        self.convert = convert
        """Makes what is stored of what is given, also of what it has made."""
        self.compare = compare
        self.repr = repr
        self.local = local
        """Whether the field is in no table and no JSON."""
        self.kw_only = kw_only


def field(**options: Any) -> Any:
    """Declare a field that is special; see `Field`."""
    return Field(**options)


def opt(description: str, **options: Any) -> Any:
    """Declare a field with a description, such as an argument of a verb."""
    return Field(**options)


class _Signature:
    """The parameters of the class, for `help` and notebooks."""

    def __get__(self, value: object, owner: type[Frozen]) -> Any:
        if value is not None:
            raise AttributeError("only the class has a signature")
        from inspect import Signature, signature

        return signature(_make_dataclass(owner)).replace(return_annotation=Signature.empty)


class _DataclassFields:
    """The fields as those of a dataclass, for the functions of `dataclasses`."""

    def __get__(self, value: object, owner: type[Frozen]) -> dict[str, dataclasses.Field[Any]]:
        owner.__dataclass_fields__ = _make_dataclass(owner).__dataclass_fields__
        return owner.__dataclass_fields__


def _make_dataclass(kind: type[Frozen]) -> Any:
    """Return a dataclass of the same fields."""
    import dataclasses

    fields = []
    hints = kind._hints()
    for name, field in kind._fields.items():
        options: dict[str, Any] = {
            "compare": field.compare,
            "repr": field.repr,
            "kw_only": field.kw_only,
            "metadata": {"local": field.local},
        }
        if field.factory is not None:
            options["default_factory"] = field.factory
        elif field.default is not ...:
            options["default"] = field.default
        fields.append((name, hints[name], dataclasses.field(**options)))
    checks = kind._converts or kind.ensure_valid is not Frozen.ensure_valid
    namespace = {"__post_init__": Frozen.__post_init__} if checks else {}
    return dataclasses.make_dataclass(
        kind.__name__, fields, namespace=namespace, frozen=True, eq=False, repr=False
    )


@dataclass_transform(frozen_default=True, field_specifiers=(field, opt))
class Frozen:
    """A value of the fields that its class declares, equal to another of the same class and the
    same fields."""

    _fields: ClassVar[dict[str, Field]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}
    _converts: ClassVar[tuple[tuple[str, Callable[[Any], Any]], ...]] = ()
    _made: ClassVar[Iterator[int]]
    """Counts the values until they are many."""
    _num_positional: ClassVar[int] = 0
    """Number of arguments if none needs its name, otherwise -1."""
    _key: ClassVar[Any] = type
    """Returns what is compared of a value."""
    __match_args__: ClassVar[tuple[str, ...]] = ()
    __signature__ = _Signature()
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls, *, kw_only: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        fields: dict[str, Field] = {}
        for base in reversed(cls.__bases__):
            fields |= getattr(base, "_fields", {})
        for name, hint in vars(cls).get("__annotations__", {}).items():
            if str(hint).startswith("ClassVar"):
                continue
            value = vars(cls).get(name, ...)
            if not isinstance(value, Field):
                fields[name] = Field(value, kw_only=kw_only)
                continue
            fields[name] = value
            delattr(cls, name)
            if value.default is not ...:
                setattr(cls, name, value.default)
        cls._fields = fields
        cls._defaults = {
            name: field.default for name, field in fields.items() if field.default is not ...
        }
        cls._converts = tuple(
            (name, field.convert) for name, field in fields.items() if field.convert
        )
        cls.__match_args__ = tuple(name for name, field in fields.items() if not field.kw_only)  # type: ignore[misc]
        cls._num_positional = len(fields) if len(cls.__match_args__) == len(fields) else -1
        compared = [name for name, field in fields.items() if field.compare]
        if compared:
            cls._key = attrgetter(*compared)
        cls._made = count(1)
        cls.__init__ = Frozen.__init__  # type: ignore[method-assign]
        cls.__dataclass_fields__ = _DataclassFields()  # type: ignore[assignment]

    def __init__(self, *values: Any, **named: Any) -> None:
        if named or len(values) != self._num_positional:
            values = self._complete(values, named)
        for name, value in zip(self._fields, values, strict=True):
            _set(self, name, value)
        if next(self._made) == _MANY:
            type(self).__init__ = _make_dataclass(type(self)).__init__  # type: ignore[method-assign]
        self.__post_init__()

    def __post_init__(self) -> None:
        for name, convert in self._converts:
            _set(self, name, convert(getattr(self, name)))
        self.ensure_valid()

    def _complete(self, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of all fields in order."""
        names = self.__match_args__
        positional = dict(zip(names, values, strict=False))
        given = {**self._defaults, **positional, **named}
        is_valid = len(values) <= len(names) and positional.keys().isdisjoint(named)
        if is_valid and given.keys() == self._fields.keys():
            return tuple(map(given.__getitem__, self._fields))
        kind = type(self).__name__
        if len(values) > len(names):
            raise TypeError(f"{kind} takes {len(names)} arguments, not {len(values)}")
        for name in named:
            if name in positional or name not in self._fields:
                raise TypeError(f"{kind} takes no argument {name!r}, or takes it once")
        for name, field in self._fields.items():
            if name in given:
                continue
            if field.factory is None:
                raise TypeError(f"{kind} needs {name}")
            given[name] = field.factory()
        return tuple(map(given.__getitem__, self._fields))

    def ensure_valid(self) -> None:
        """Raise UsageError if the fields contradict each other."""

    def __setattr__(self, name: str, *value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    __delattr__ = __setattr__

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        is_equal: bool = self._key(self) == self._key(other)
        return is_equal

    def __hash__(self) -> int:
        return hash(self._key(self))

    def __repr__(self) -> str:
        fields = (
            f"{name}={getattr(self, name)!r}" for name, field in self._fields.items() if field.repr
        )
        return f"{type(self).__name__}({', '.join(fields)})"

    @classmethod
    def _hints(cls) -> dict[str, Any]:
        hints: dict[str, Any] = {}
        for kind in reversed(cls.__mro__):
            hints.update(vars(kind).get("__annotations__", {}))
        return hints


def replace(value: F, /, **changes: Any) -> F:
    """Return a copy with other values of some fields."""
    return type(value)(**{name: getattr(value, name) for name in value._fields} | changes)
