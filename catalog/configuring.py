"""Configuration that is stored in the catalog: the verbs of `Catalog` for settings."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from catalog.config import Settings
from catalog.operating import Operating
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


class Configuring(Operating):
    """The verbs of `Catalog` on stored settings.

    They are read once, when a call first needs one; what another process changes is seen at the
    next open, or after `reload_settings`.
    """

    _settings: Settings
    _setting_keeper: SettingKeeper
    _layers: Layers | None
    _layers_lock: threading.Lock

    def settings(self) -> tuple[Setting, ...]:
        """Every setting that is known or stored, with its value and where that is from."""
        return self._layered().all()

    def get_setting(self, name: str) -> Any:
        """The value of a setting: given for this open catalog, stored, of the file, or default."""
        return self._layered().setting(name).value

    def set_setting(
        self,
        name: str,
        value: Any,
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> SettingResult:
        """Stores a setting for everybody who opens the catalog; the same again is no change.

        Raises:
            InvalidSetting: There is no such setting, or it cannot have this value.
        """
        return self._configure(setting(checked({name: value})), "set", actor, reason, deadline)

    def unset_setting(
        self,
        name: str,
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> SettingResult:
        """Removes a stored setting; one that is not stored is no change."""
        known = name if name in self._layered().stored else known_setting(name).name
        return self._configure(unsetting(known), "unset", actor, reason, deadline)

    def adopt_settings(
        self,
        values: Mapping[str, Any],
        file: str,
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> SettingResult:
        """Stores the settings of a configuration file, once for a catalog and whoever is first.

        What is stored already stays. From then on the file's settings do not count any more.
        """
        decide = adopting(checked(values), known_setting(FILE).check(file))
        return self._configure(decide, "adopt", actor, reason, deadline)

    def reload_settings(self) -> None:
        """Reads stored settings anew when the next call needs one."""
        with self._layers_lock:
            self._layers = None

    def _configure(
        self, decide: Decide, verb: str, actor: str | None, reason: str, deadline: float | None
    ) -> SettingResult:
        self._check_writable()
        asking = self._asking(actor, reason, deadline)
        result = self._queue.alone(
            lambda: self._setting_keeper.change(decide, verb, asking), asking.deadline
        )
        self.reload_settings()
        return result

    def _chosen(self, name: str, given: Any) -> Any:
        """What a call was given, or else what the setting says."""
        return self.get_setting(name) if given is None else given

    def _layered(self) -> Layers:
        with self._layers_lock:
            if self._layers is None:
                given = checked(self._settings.given)
                if self._settings.deadline is not None:
                    given["deadline"] = self._settings.deadline
                stored = stored_settings(self._store)
                self._layers = Layers(given, stored, checked(self._settings.fallback))
            return self._layers
