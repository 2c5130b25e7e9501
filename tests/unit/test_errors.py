"""The tree of errors."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import re
from collections.abc import Iterator

import pytest

import catalog
from catalog import errors
from catalog.errors import CatalogError, InvalidInput

for module in pkgutil.walk_packages(catalog.__path__, "catalog."):
    importlib.import_module(module.name)


def tree(root: type[CatalogError] = CatalogError) -> Iterator[type[CatalogError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


ERRORS = [error for error in tree() if error.__module__.startswith("catalog.")]
RETRYABLE = {
    *(
        "NOT_LOADED",
        "GAVE_UP",
        "CACHE_BEHIND",
        "LOAD_INTERRUPTED",
        "OUTCOME_UNKNOWN",
        "UNREADABLE_FILES",
    ),
    *("SCHEMA_VERSION_MISMATCH", "PARTS_MISSING", "CLAIM_CONFLICT"),
    *("TASK_BUSY", "TASK_LOST"),
}


def test_every_error_has_a_condition_of_its_own() -> None:
    conditions = [error.condition for error in ERRORS]
    assert len(conditions) == len(set(conditions))
    assert all("condition" in vars(error) for error in ERRORS)


@pytest.mark.parametrize("error", ERRORS)
def test_a_condition_is_the_name_of_its_class(error: type[CatalogError]) -> None:
    assert (
        error.condition == re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=A)(?=C)", "_", error.__name__).upper()
    )


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_travels_with_its_message_and_values(error: type[CatalogError]) -> None:
    made = error("It's {broken}.", segment_id="a/1", count=3, nested=("x", None))
    copy = pickle.loads(pickle.dumps(made))
    assert type(copy) is error
    assert (copy.message, copy.values) == (made.message, made.values)
    assert str(copy) == str(made) == f"[{error.condition}] It's {{broken}}."


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_says_whether_the_same_call_can_succeed_later(error: type[CatalogError]) -> None:
    assert error.retryable == (error.condition in RETRYABLE)


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_says_in_a_sentence_what_it_stands_for(error: type[CatalogError]) -> None:
    assert error.__doc__ is not None
    assert "." in error.__doc__


def test_bad_input_is_a_value_error_and_what_is_not_there_a_lookup_error() -> None:
    assert issubclass(InvalidInput, ValueError)
    for error in (errors.UnknownSchema, errors.VersionNotFound, errors.NotInSnapshot):
        assert issubclass(error, LookupError)
