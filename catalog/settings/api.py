"""`catalog.settings`: configuration that is stored in the catalog."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Unpack

from catalog.commit.committer import Committer
from catalog.context import CallOptions, Context
from catalog.delta.store import Store
from catalog.settings.model import FILE, Layers, Setting, checked, known_setting
from catalog.settings.store import (
    Decide,
    SettingKeeper,
    SettingResult,
    adopting,
    setting,
    stored_settings,
    unsetting,
)


class EffectiveSettings:
    """The settings of an open catalog: given, stored, of a file, or default.

    Stored ones are read once, when a call first needs one.
    """

    def __init__(self, store: Store, given: Mapping[str, Any], file: Mapping[str, Any]) -> None:
        self._store = store
        self._given = given
        self._file = file
        self._layers: Layers | None = None
        self._lock = threading.Lock()

    def value(self, name: str) -> Any:
        return self.layers().setting(name).value

    def layers(self) -> Layers:
        with self._lock:
            if self._layers is None:
                self._layers = Layers(
                    checked(self._given), stored_settings(self._store), checked(self._file)
                )
            return self._layers

    def reload(self) -> None:
        with self._lock:
            self._layers = None


class SettingsApi:
    """Stored settings.

    They are read once, when a call first needs one; what another process changes is seen at the
    next open, or after `reload`.
    """

    def __init__(
        self, context: Context, committer: Committer, effective: EffectiveSettings
    ) -> None:
        self._context = context
        self._keeper = SettingKeeper(committer)
        self._effective = effective

    def list(self) -> tuple[Setting, ...]:
        """Every setting that is known or stored, with its value and its source."""
        return self._effective.layers().all()

    def get(self, name: str) -> Any:
        """The value of a setting: given for this open catalog, stored, of the file, or default."""
        return self._effective.value(name)

    def set(self, name: str, value: Any, **options: Unpack[CallOptions]) -> SettingResult:
        """Stores a setting for everybody who opens the catalog; the same again is no change.

        Raises:
            InvalidSetting: There is no such setting, or it cannot have this value.
        """
        return self._change(setting(checked({name: value})), "set", **options)

    def unset(self, name: str, **options: Unpack[CallOptions]) -> SettingResult:
        """Removes a stored setting; one that is not stored is no change."""
        stored = self._effective.layers().stored
        known = name if name in stored else known_setting(name).name
        return self._change(unsetting(known), "unset", **options)

    def adopt(
        self, values: Mapping[str, Any], file: str, **options: Unpack[CallOptions]
    ) -> SettingResult:
        """Stores the settings of a configuration file, once for a catalog: the first file wins.

        Settings that are stored already stay. From then on the file is ignored.
        """
        decide = adopting(checked(values), known_setting(FILE).check(file))
        return self._change(decide, "adopt", **options)

    def reload(self) -> None:
        """Reads stored settings again when the next call needs one."""
        self._effective.reload()

    def _change(self, decide: Decide, verb: str, **options: Unpack[CallOptions]) -> SettingResult:
        call = self._context.writing(**options)
        result = self._context.alone(call, lambda: self._keeper.change(decide, verb, call))
        self._effective.reload()
        return result
