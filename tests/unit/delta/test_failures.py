"""What an exception means for the statement that raised it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors.exceptions.connect import (
    SparkConnectGrpcException,
    SparkException,
    SparkRuntimeException,
)

from catalog.delta.failures import (
    Failure,
    classify,
    condition_of,
    mark,
    marked,
    sql_state_of,
)


def from_spark(condition: str | None, message: str = "", **given: Any) -> SparkException:
    """What the Connect client makes of an error; the classic one has the same getters."""
    return SparkException(message=f"[{condition}] {message}", errorClass=condition, **given)


def raised(kind: str, key: str) -> SparkRuntimeException:
    """What a check in a statement ends in."""
    text = f"strata:{kind}:{key}:strata"
    return SparkRuntimeException(
        message=f"[USER_RAISED_EXCEPTION] {text} SQLSTATE: P0001",
        errorClass="USER_RAISED_EXCEPTION",
        messageParameters={"errorMessage": text},
        sql_state="P0001",
    )


class Py4JJavaError(Py4JError):
    """Stands for the error of the same name, which needs a JVM to be made."""


CASES: list[tuple[BaseException, Failure]] = [
    (from_spark("DELTA_CONCURRENT_APPEND"), Failure.CONFLICT),
    (from_spark("DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"), Failure.CONFLICT),
    (from_spark("DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"), Failure.CONFLICT),
    (from_spark("DELTA_CONCURRENT_TRANSACTION"), Failure.CONFLICT),
    (from_spark("DELTA_CONCURRENT_WRITE"), Failure.CONFLICT),
    (from_spark("DELTA_METADATA_CHANGED"), Failure.CONFLICT),
    (from_spark("DELTA_PROTOCOL_CHANGED"), Failure.CONFLICT),
    (from_spark("DELTA_MAX_COMMIT_RETRIES_EXCEEDED"), Failure.CONFLICT),
    (from_spark("NEW_NAME", sql_state="2D521"), Failure.CONFLICT),
    (SparkException(message="io.delta.exceptions.ConcurrentAppendException: x"), Failure.CONFLICT),
    (SparkException(message="o.d.ConcurrentDeleteReadException: x"), Failure.CONFLICT),
    (SparkException(message="o.d.MetadataChangedException: x"), Failure.CONFLICT),
    (SparkException(message="o.d.ProtocolChangedException: x"), Failure.CONFLICT),
    (SparkException(message="(x) [DELTA_CONCURRENT_APPEND] y"), Failure.CONFLICT),
    (Py4JJavaError("o.a.s.sql.delta.ConcurrentWriteException: x"), Failure.CONFLICT),
    (raised("segment", "orders/1"), Failure.RAISED),
    (SparkException(message="stage failed: [USER_RAISED_EXCEPTION] x"), Failure.RAISED),
    (from_spark("SPARK_JOB_CANCELLED"), Failure.CANCELLED),
    (SparkException(message="[SPARK_JOB_CANCELLED] Job 3 cancelled"), Failure.CANCELLED),
    (Py4JNetworkError("Answer from Java side is empty"), Failure.LOST),
    (Py4JError("An error occurred while calling o1.sql"), Failure.LOST),
    (ConnectionResetError(104, "reset by peer"), Failure.LOST),
    (ConnectionRefusedError(111, "refused"), Failure.LOST),
    (BrokenPipeError(32, "broken pipe"), Failure.LOST),
    (EOFError(), Failure.LOST),
    (SparkConnectGrpcException(message="UNAVAILABLE: Socket closed"), Failure.LOST),
    (Py4JJavaError("java.lang.OutOfMemoryError"), Failure.REFUSED),
    (from_spark("TABLE_OR_VIEW_NOT_FOUND"), Failure.REFUSED),
    (from_spark("DELTA_TABLE_NOT_FOUND"), Failure.REFUSED),
    (from_spark("MERGE_CARDINALITY_VIOLATION", sql_state="23K01"), Failure.REFUSED),
    (from_spark(None), Failure.REFUSED),
    (ValueError("bad"), Failure.REFUSED),
    (OSError("disk full"), Failure.REFUSED),
]


@pytest.mark.parametrize(("error", "failure"), CASES)
def test_a_failure_is_told_by_condition_then_state_then_text(
    error: BaseException, failure: Failure
) -> None:
    assert classify(error) is failure


@pytest.mark.parametrize(
    "key",
    [
        "orders/ConcurrentAppendException",
        "orders/DELTA_CONCURRENT_APPEND",
        "orders/SPARK_JOB_CANCELLED",
        "DELTA_METADATA_CHANGED/1",
    ],
)
def test_a_name_in_the_data_does_not_change_what_a_refusal_is(key: str) -> None:
    error = raised("segment", key)
    assert (classify(error), marked(error)) == (Failure.RAISED, ("segment", key))


def test_the_condition_and_state_of_an_error_that_has_none_are_empty() -> None:
    assert (condition_of(ValueError()), sql_state_of(ValueError())) == ("", "")
    assert condition_of(from_spark("A.B", sql_state="42000")) == "A.B"
    assert sql_state_of(from_spark("A.B", sql_state="42000")) == "42000"


# --- marks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        "orders/1",
        "a:b/c:d",
        'it\'s/"quoted"`',
        "two\nlines/\r\n",
        "",
        "strata:segment:x",
        "orders/:strata",
        "orders/:strata:x",
        "größe/😀",
    ],
)
def test_a_mark_reads_back_with_whatever_the_key_holds(key: str) -> None:
    assert marked(raised("segment", key)) == ("segment", key)


@given(st.text())
def test_any_key_reads_back(key: str) -> None:
    assert marked(raised("schema", key)) == ("schema", key)


def test_a_mark_is_found_in_text_when_no_parameters_came_along() -> None:
    text = "Job aborted: [USER_RAISED_EXCEPTION] strata:segment:orders/1:strata SQLSTATE: P0001\nat"
    assert marked(RuntimeError(text)) == ("segment", "orders/1")


@pytest.mark.parametrize("error", [ValueError("strata:segment:x"), from_spark("A"), EOFError()])
def test_an_error_without_a_mark_has_none(error: BaseException) -> None:
    assert marked(error) is None


def test_a_mark_is_raised_by_an_expression_over_columns() -> None:
    assert mark("t.kind", "t.key") == (
        "raise_error(concat('strata:', t.kind, ':', t.key, ':strata'))"
    )
