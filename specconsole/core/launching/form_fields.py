"""The fields of the form: a profile's own keys, the engine's settings by the server's flags, variables, raw flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from specconsole.core.engines.llamacpp.form_layout import LAYOUT as LLAMACPP
from specconsole.core.engines.sglang.form_layout import LAYOUT as SGLANG
from specconsole.core.engines.vllm.form_layout import LAYOUT as VLLM
from specconsole.core.launching.engine_settings import ENGINE_FLAGS
from specconsole.core.launching.form_layout import FormLayout, Kind, Section
from specconsole.core.launching.help_text import Flag, FlagCatalogue
from specconsole.core.launching.profile import Profile

FieldPath = tuple[str, ...]
"""Where its value stands in a profile: `("port",)`, `("args", "tp_size")`, `("args", "speculative_config", "method")`,
`("env", "NCCL_ALGO")`."""

LAYOUTS: Mapping[str, FormLayout] = {"sglang": SGLANG, "vllm": VLLM, "llamacpp": LLAMACPP}
NO_LAYOUT = FormLayout(sections={})

_ALLOWED = re.compile(r"(?:allowed values|one of|choices|possible values|Builtins):\s*([\w.:+-]+(?:,\s*[\w.:+-]+)+)")
_QUOTED = re.compile(r"[`'\"]([\w.+-]+)[`'\"]")
_LONG_LIST = 40
"""More words than that in a help text are prose, not a list of values."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One line of the form."""

    path: FieldPath
    section: Section
    kind: Kind
    label: str
    flag: str = ""
    """The flag as the server's help names it; "" for what is no flag, or is not in that help."""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    """Values to choose from."""
    closed: bool = False
    """True: the server refuses any other value."""
    default: str | None = None
    """What the server's help says it is when left empty; None: it does not say."""
    help: str = ""
    deprecated: bool = False
    replacement: str = ""
    known: bool = True
    """False: the server's help has no such flag."""
    off_name: str = ""
    """The setting that turns it off (`no_mmap`); "" where that is done by leaving the flag out."""

    @property
    def field_id(self) -> str:
        """`args.tp_size`: as error texts and profiles name it."""
        return ".".join(self.path)

    @property
    def name(self) -> str:
        return self.path[-1]


class FlagIndex:
    """A catalogue by name: `FlagCatalogue.find` looks through all flags each time."""

    def __init__(self, catalogue: FlagCatalogue) -> None:
        self.catalogue = catalogue
        self._exact: dict[str, Flag] = {}
        self._any: dict[str, Flag] = {}
        for flag in catalogue.flags:
            for alias in flag.aliases:
                word = alias.lstrip("-").replace("_", "-")
                self._exact.setdefault(word, flag)
                self._any.setdefault(word.lower(), flag)

    def find(self, name: str) -> Flag | None:
        """As `FlagCatalogue.find`: letters' case counts where there are two of a name."""
        word = name.lstrip("-").replace("_", "-")
        return self._exact.get(word) or self._any.get(word.lower())


_PLAIN: tuple[tuple[str, Section, Kind, str], ...] = (
    ("model", "model", "path", "the target: a folder or file on the host, or a hub's name"),
    ("draft_model", "speculation", "path", "the draft: a folder or file on the host, or a hub's name"),
    ("port", "server", "int", "the port that it listens on; empty: a free one is picked at launch"),
    ("bind", "server", "text", "the address that it listens on; 0.0.0.0 is reached from everywhere"),
    ("environment", "server", "path", "a Python environment's folder on the host; its bin goes first on PATH"),
    ("working_dir", "server", "path", "the folder that it is started in"),
    ("command", "server", "list", "what is run, without the flags; empty: the engine's own command"),
    ("engine_version", "server", "text", "what rules go by where the host's own version is not known"),
    ("host", "server", "text", "the host that the profile is for; empty leaves it open"),
    ("grace_s", "server", "float", "seconds between TERM and KILL when it is stopped"),
    ("description", "server", "text", "one line that the list shows"),
    ("tags", "server", "list", "words that the list is filtered by"),
)
_DEFAULTS: Mapping[str, str] = {"bind": "127.0.0.1", "port": "a free one", "grace_s": "20"}


def form_fields(profile: Profile, index: FlagIndex | None, more: Iterable[FieldPath] = ()) -> tuple[FormField, ...]:
    """All fields, section by section.

    `more`: settings and variables that stand in the form although the profile does not set them (the parent does, or
    the person has just added them).
    """
    return _Fields(profile, index, more).all()


@dataclass(slots=True)
class _Fields:
    profile: Profile
    index: FlagIndex | None
    more: Iterable[FieldPath]
    _taken: set[str] = field(default_factory=set)
    """Names of settings that have their field, under every alias."""

    def all(self) -> tuple[FormField, ...]:
        layout = LAYOUTS.get(self.profile.engine, NO_LAYOUT)
        extra = [path[1] for path in self.more if path[0] == "args" and len(path) == 2]
        names = list(dict.fromkeys([*self.profile.args, *extra]))
        by_section: dict[Section, list[FormField]] = {
            "model": [], "speculation": [], "parallelism": [], "memory": [], "server": [],
        }  # fmt: skip
        self._take_plain(by_section, names)
        for section, settings in layout.sections.items():
            for one in settings:
                found = self._setting(one.name, section, one.kind, layout, names)
                if found is not None:
                    by_section[section].append(found)
        plain_server = [one for one in by_section["server"] if len(one.path) == 1]
        by_section["server"] = [*plain_server, *(one for one in by_section["server"] if len(one.path) > 1)]
        raw = [self._raw(name, layout) for name in names if _plain(name) not in self._taken]
        return (*(one for fields in by_section.values() for one in fields), *self._variables(layout), *raw)

    def _take_plain(self, into: dict[Section, list[FormField]], names: Sequence[str]) -> None:
        flags = ENGINE_FLAGS.get(self.profile.engine)
        # Where a profile says the model as a flag, the flag is the field.
        as_flags = {"model": flags.model if flags else None, "draft_model": flags.draft if flags else None}
        for name, section, kind, text in _PLAIN:
            if name == "draft_model" and (flags is None or flags.draft is None):
                continue
            flag = self._find(as_flags.get(name) or "")
            given = next((one for one in names if flag is not None and self._find(one) is flag), None)
            path = (name,) if given is None else ("args", given)
            if flag is not None:
                self._take(flag)
            if given is not None:
                self._taken.add(_plain(given))
            into[section].append(
                FormField(path, section, kind, name, flag.name if flag else "", default=_DEFAULTS.get(name), help=text)
            )

    def _find(self, name: str) -> Flag | None:
        if self.index is None or not name:
            return None
        # `tp` is no flag of SGLang's help: argparse takes it for `--tp-size`, and so does everybody.
        flags = ENGINE_FLAGS.get(self.profile.engine)
        own = flags.aliases.get(_plain(name), "") if flags is not None else ""
        return self.index.find(name) or (self.index.find(own) if own else None)

    def _take(self, flag: Flag) -> None:
        self._taken |= {_plain(alias) for alias in flag.aliases}

    def _setting(
        self, name: str, section: Section, kind: Kind | None, layout: FormLayout, names: Sequence[str]
    ) -> FormField | None:
        """The field of one of the layout's settings; None where this server has no such flag and nobody set it."""
        head, dot, key = name.partition(".")
        flag = self._find(head)
        given = next((one for one in names if _plain(one) == _plain(head) or (flag and self._find(one) is flag)), None)
        if flag is None and self.index is not None and given is None:
            return None
        if dot:
            self._taken.add(_plain(head))
            return FormField(
                ("args", given or head, key), section, kind or "text", key, flag.name if flag else "",
                choices=layout.suggestions.get(name, ()), help=layout.help.get(name, ""), known=flag is not None,
            )  # fmt: skip
        if flag is not None and given is None and _plain(head) in self._taken:
            return None  # two names of the layout for one flag of this version
        if flag is not None and flag.deprecated and given is None:
            return None  # nobody starts with a flag that is on its way out
        self._taken.add(_plain(given or head))
        if flag is not None:
            self._take(flag)
        return _flag_field(given or head, section, kind, flag, layout.suggestions.get(name, ()), self.index is not None)

    def _raw(self, name: str, layout: FormLayout) -> FormField:
        head = name.partition(".")[0] if self.profile.engine == "vllm" else name
        value = self.profile.args.get(name)
        return _flag_field(
            name, "raw flags", _kind_of(value), self._find(head), layout.suggestions.get(name, ()),
            self.index is not None,
        )  # fmt: skip

    def _variables(self, layout: FormLayout) -> list[FormField]:
        extra = [path[1] for path in self.more if path[0] == "env"]
        names = list(dict.fromkeys([*self.profile.env, *extra]))
        found = [FormField(("env", name), "environment", "text", name, help=layout.variables.get(name, ""))
                 for name in names if name not in self.profile.secrets]  # fmt: skip
        about = "a secret: the place of its value (env:NAME, file:PATH, command:...), never the value"
        found += [FormField(("secrets", name), "environment", "text", name, help=about)
                  for name in self.profile.secrets]  # fmt: skip
        return found


def _flag_field(
    name: str, section: Section, kind: Kind | None, flag: Flag | None, suggestions: tuple[str, ...], read: bool
) -> FormField:
    if flag is None:
        return FormField(("args", name), section, kind or "text", name, choices=suggestions, known=not read)
    choices = flag.choices or suggestions or _choices_in(flag)
    off = next((alias for alias in flag.aliases if alias.startswith("--no-")), "")
    if off and _plain(name) == _plain(off):
        name = _plain(flag.name)
    default = flag.default
    own = kind
    if not flag.takes_value and flag.metavar == "":
        own = "on-off" if off else "switch"
        default = _SWITCHED.get((default or "").lower(), default)
    elif flag.choices and not flag.many:
        own = "choice"
    elif own in (None, "switch"):
        own = "list" if flag.many else _kind_by_help(flag)
    return FormField(
        ("args", name), section, own, name, flag.name, flag.metavar, choices,
        closed=bool(flag.choices), default=default, help=flag.help, deprecated=flag.deprecated,
        replacement=flag.replacement or "", off_name=off.lstrip("-").replace("-", "_"),
    )  # fmt: skip


_SWITCHED = {"true": "on", "enabled": "on", "false": "off", "disabled": "off"}


def _kind_by_help(flag: Flag) -> Kind:
    """Text where the help leaves it open: a wrong guess must not refuse what the server takes."""
    word = flag.metavar.upper()
    if word.endswith(("PATH", "FNAME", "FOLDER", "FILE", "DIR")):
        return "path"
    if (flag.default or "").startswith("{"):
        return "table"
    return "text"


def _choices_in(flag: Flag) -> tuple[str, ...]:
    """Values that a help text names in passing."""
    if re.fullmatch(r"[\w.+-]+(\|[\w.+-]+)+", flag.metavar):
        return tuple(flag.metavar.split("|"))
    if match := _ALLOWED.search(flag.help):
        return tuple(word.strip().rstrip(".") for word in match[1].split(","))
    # A list of what it may be, one quoted word at the start of each item.
    listed = tuple(dict.fromkeys(re.findall(r"- [`'\"]([\w.+-]+)[`'\"]", flag.help)))
    return listed if 1 < len(listed) < _LONG_LIST else ()


def _kind_of(value: object) -> Kind | None:
    if isinstance(value, bool):
        return "switch"
    if isinstance(value, Mapping):
        return "table"
    return "list" if isinstance(value, list) else None


def _plain(name: str) -> str:
    return name.lstrip("-").replace("-", "_")
