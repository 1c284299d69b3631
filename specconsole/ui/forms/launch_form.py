"""Starting a server: pick a profile, set the host, override values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from specconsole.services.commands import LaunchOrder, ProfileSummary
from specconsole.ui.formatters import row, styled
from specconsole.ui.forms.modal import Modal


def parse_overrides(text: str) -> dict[str, Any]:
    """`tp_size=4, mem_fraction_static=0.84, no attention_backend` as settings; a value that is no TOML is text.

    Raises ValueError with a sentence for the person.
    """
    found: dict[str, Any] = {}
    for part in _split(text):
        if part.startswith("no "):
            found[_setting(part[3:])] = None
            continue
        name, sign, value = part.partition("=")
        if not sign:
            raise ValueError(f"{part!r}: name=value is wanted, or `no name`")
        found[_setting(name)] = _value(value.strip())
    return found


def _setting(name: str) -> str:
    name = name.strip().removeprefix("--").replace("-", "_")
    if not name.isidentifier():
        raise ValueError(f"{name!r} is no setting's name")
    return name


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _split(text: str) -> list[str]:
    """Parts between commas that stand outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def overrides_text(overrides: Mapping[str, Any]) -> str:
    """The inverse of `parse_overrides`, for filling the form."""
    words = []
    for name, value in overrides.items():
        if value is None:
            words.append(f"no {name}")
        else:
            words.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    return ", ".join(words)


class LaunchForm(Modal[LaunchOrder]):
    """Gives the order. `host` holds whatever profile is picked; `usual_host` gives way to a profile's own."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+l", "start", show=False, priority=True)]
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("⏎", "next, then launch"), ("^l", "launch"), ("tab", "next field"), ("esc", "leave"),
    )  # fmt: skip

    def __init__(
        self,
        profiles: Sequence[ProfileSummary],
        hosts: Sequence[str],
        *,
        profile: str = "",
        host: str = "",
        usual_host: str = "",
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__("launch a server")
        self._profiles = profiles
        self._hosts = hosts
        self._profile = profile
        self._host = host
        self._usual_host = usual_host
        self._overrides = overrides_text(overrides or {})

    def body(self) -> ComposeResult:
        yield Static(styled("profile", "$muted"))
        yield OptionList(*(Option(self._line(profile)) for profile in self._profiles), id="profiles")
        yield Static(styled("host", "$muted"), classes="label")
        yield OptionList(*(Option(styled(host)) for host in self._hosts), id="hosts-list")
        yield Static(styled("change values: name=value, name=value, no name", "$muted"), classes="label")
        yield Input(self._overrides, placeholder="speculative_num_steps=2, mem_fraction_static=0.84", id="overrides")
        yield Static("", id="summary", markup=False)

    @staticmethod
    def _line(profile: ProfileSummary) -> Content:
        note = (profile.problem, "$error") if profile.problem else (profile.summary, "$muted")
        return row((f"{profile.name:<24}", "bold"), f" {profile.engine:<9} ", note)

    def on_mount(self) -> None:
        names = [profile.name for profile in self._profiles]
        profiles, hosts = self.query_one("#profiles", OptionList), self.query_one("#hosts-list", OptionList)
        profiles.highlighted = names.index(self._profile) if self._profile in names else 0 if names else None
        host = self._host or self._usual_host
        hosts.highlighted = self._hosts.index(host) if host in self._hosts else 0 if self._hosts else None
        profiles.focus()
        if not self._profiles:
            self.wrong("there is no profile yet; put one into the profiles folder")

    @property
    def _picked(self) -> ProfileSummary | None:
        place = self.query_one("#profiles", OptionList).highlighted
        return self._profiles[place] if place is not None and self._profiles else None

    @on(OptionList.OptionHighlighted, "#profiles")
    def _profile_changed(self) -> None:
        picked = self._picked
        if picked is None:
            return
        if picked.host in self._hosts and not self._host:
            self.query_one("#hosts-list", OptionList).highlighted = self._hosts.index(picked.host)
        shown = [f"{name}={value}" for name, value in picked.settings.items()]
        self.query_one("#summary", Static).update(styled("  ".join(shown[:24]), "$muted"))
        self.wrong(picked.problem)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.focus_next()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_start()

    def action_start(self) -> None:
        picked, place = self._picked, self.query_one("#hosts-list", OptionList).highlighted
        if picked is None or place is None:
            self.wrong("a profile and a host are wanted")
            return
        if picked.problem:
            self.wrong(picked.problem)
            return
        try:
            overrides = parse_overrides(self.query_one("#overrides", Input).value)
        except ValueError as error:
            self.wrong(str(error))
            return
        self.dismiss(LaunchOrder(picked.name, self._hosts[place], overrides))
