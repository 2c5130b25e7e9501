"""Runs one command: session, catalog, record, metrics, and the one place that catches."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
import uuid
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from catalog.catalog import Catalog
from catalog.cli.choices import SPARK_ACTOR, SPARK_LOCATION, SPARK_SESSION, Choices, no_location
from catalog.cli.command import Access, Answer, Command, Work, is_task
from catalog.cli.outcome import (
    ADDED_UP,
    Exit,
    Recorder,
    RunOutcome,
    check_metrics_file,
    exit_of,
    write_metrics,
)
from catalog.cli.output import Renderer, renderer, shown_progress
from catalog.config import Settings, user
from catalog.delta.runs import Run
from catalog.progress import Progress, Step
from catalog.settings.model import FILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Sessions = Callable[[Namespace, Choices, Renderer], "AbstractContextManager[SparkSession]"]

log = logging.getLogger(__name__)

# What a parsed command line holds besides the command's own arguments.
_OURS = {"command", "config", "output", "verbose", "record", "remote", "properties_file", "conf"}


def run(
    command: Command,
    arguments: Namespace,
    choices: Callable[[], Choices],
    sessions: Sessions,
    recorded: bool,
) -> int:
    """Runs a command to its end and returns the exit code."""
    shown = renderer(arguments.output, command.name)
    level = logging.INFO if arguments.verbose else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(message)s")
    running = _Run(command, arguments, shown, recorded)
    try:
        with _ended_by_sigterm():
            running.run(choices(), sessions)
    except BrokenPipeError:  # the reader of the answer has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(running.code)
    except BaseException as error:  # Ctrl-C too: it has its own exit code
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        code = exit_of(error)
        if code is Exit.UNEXPECTED and not isinstance(error, KeyboardInterrupt):
            traceback.print_exc()
        for note in getattr(error, "__notes__", ()):
            shown.tell(note)
        shown.fail(error)
        return int(code)
    return int(running.code)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Ends a run at SIGTERM as Ctrl-C does: recorded and cleaned up."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt("SIGTERM")

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Run:
    """One run of a command."""

    def __init__(
        self, command: Command, arguments: Namespace, shown: Renderer, recorded: bool
    ) -> None:
        self._command = command
        self._arguments = arguments
        self._shown = shown
        self._dry_run = getattr(arguments, "dry_run", False)
        # A dry run writes nothing and needs no right to write. The row of a task is that of its
        # run, and is written by the process that runs the task.
        skips = self._dry_run or is_task(arguments)
        self._recorded = recorded and command.access.opens and not skips
        self._run_id = uuid.uuid4().hex
        self._began = time.monotonic()
        self._catalog: Catalog | None = None
        self._recorder: Recorder | None = None
        self._figures: dict[str, float] = {}
        self.code = Exit.DONE

    def run(self, choices: Choices, sessions: Sessions) -> None:
        if self._arguments.metrics_file is not None:
            check_metrics_file(self._arguments.metrics_file)
        with ExitStack() as stack:
            spark = stack.enter_context(sessions(self._arguments, choices, self._shown))
            try:
                stack.callback(self._close)
                location, actor = "", ""
                if self._command.access is not Access.NONE:
                    chosen = choices.over(from_spark(spark))
                    location, actor = _named(chosen)
                    if self._command.access is not Access.NEW:
                        self._open(spark, location, actor, chosen)
                with shown_progress(self._command.long) as progress:
                    work = Work(
                        spark,
                        self._arguments,
                        partial(self._step, progress),
                        self._tell,
                        self._catalog,
                        location,
                        actor,
                    )
                    answer = self._command.work(work)
                self._count(answer.figures)
                self.code = Exit.FOUND if answer.found else Exit.DONE
            except BaseException as error:
                self._end(exit_of(error), error)
                raise
            self._end(self.code, None)
            # Last: what was done is recorded even if the answer cannot be printed.
            self._shown.show(answer)

    def _open(self, spark: SparkSession, location: str, actor: str, choices: Choices) -> None:
        access = self._command.access
        self._catalog = Catalog.open(
            spark,
            location,
            read_only=(access is Access.READ or self._dry_run)
            and not (self._recorded or is_task(self._arguments)),
            create=access is Access.CREATE,
            actor=actor,
            run_id=self._run_id,
            session=choices.session or "",
            settings=Settings(given=choices.given, fallback=choices.fallback),
        )
        self._adopt(self._catalog, choices)
        if self._recorded:
            now = datetime.now(UTC)
            run = Run(
                self._run_id, self._command.job_name, _given(self._arguments), actor, now, now
            )
            self._recorder = Recorder(self._catalog, run)
            self._recorder.begin()

    def _adopt(self, catalog: Catalog, choices: Choices) -> None:
        """Stores the settings of the file once, by the first run that may write."""
        writes = self._command.access in (Access.WRITE, Access.CREATE) and not self._dry_run
        if choices.file is None or not writes or catalog.settings.get(FILE) is not None:
            return
        catalog.settings.adopt(
            choices.fallback, choices.file, reason="settings of the configuration file"
        )
        catalog.settings.reload()

    def _close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()

    def _step(self, progress: Progress, step: Step) -> None:
        """Shows progress, and records that the run is alive."""
        progress(step)
        if self._recorder is not None:
            self._recorder.alive(self._figures)

    def _tell(self, answer: Answer) -> None:
        """Shows an answer of a command that keeps running, and records that it is alive."""
        self._shown.show(answer)
        self._count(answer.figures)  # afterwards: what was not shown does not count
        if self._recorder is not None:
            self._recorder.alive(self._figures)
        self._write_metrics(Exit.DONE)

    def _count(self, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            adds_up = name in ADDED_UP
            self._figures[name] = self._figures.get(name, 0) + value if adds_up else value

    def _end(self, code: Exit, error: BaseException | None) -> None:
        if self._recorder is not None:
            self._recorder.end(code, self._figures, error)
        self._write_metrics(code)

    def _write_metrics(self, code: Exit) -> None:
        file = self._arguments.metrics_file
        if file is None:
            return
        seconds = time.monotonic() - self._began
        where = "" if self._catalog is None else str(self._catalog.location)
        outcome = RunOutcome(self._command.job_name, where, code, seconds, self._figures)
        try:
            stats = None if self._catalog is None else self._catalog.stats()
            write_metrics(file, outcome, stats, datetime.now(UTC))
        except Exception as failure:  # what the run did is committed, and so its exit code stays
            log.warning("The metrics could not be written to %s: %s", file, failure)


def _named(choices: Choices) -> tuple[str, str]:
    """The catalog's location and the actor that were chosen."""
    if choices.location is None:
        raise no_location()
    return choices.location, choices.actor or user()


def from_spark(spark: SparkSession) -> Choices:
    """The choices of the session's configuration, which come from a properties file."""
    return Choices(
        location=spark.conf.get(SPARK_LOCATION, None) or None,
        actor=spark.conf.get(SPARK_ACTOR, None) or None,
        session=spark.conf.get(SPARK_SESSION, None) or None,
    )


def _given(arguments: Namespace) -> dict[str, object]:
    """The arguments that were given, for the record."""
    return {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in sorted(vars(arguments).items())
        if name not in _OURS and value is not None and value is not False
    }
