"""The job as a form: a view of the one model that the text shows too."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from pai_scheduler.i18n import Message
from pai_scheduler.job.json_path import path_text
from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo

from ..images import EXAMPLE, ImageHelp
from .envs import DEBUG, EnvList
from .explorer.picker import Picker
from .extras import ExtrasFields
from .fields import CheckField, ChoiceField, Field, IntegerField, SuggestField, TextField
from .free import gpu_counts
from .json_edit import ABSENT, Path
from .labels import job_label
from .language import Language
from .look import button, notice, show
from .model import JobModel
from .roles import RoleList

_ENVS, _AFTER = "$.jobEnvs", "$.extras.after"
_STORAGE = ("codeDir", "dataDir", "outputDir", "authFile")
#: Those of them that name one file.
_ONE_FILE = frozenset({"authFile"})
_UNIQUE_SUFFIX = re.compile(r"_[0-9a-f]{8}$")


class FormView(widgets.VBox):
    """All inputs of a job; edits go to the model, changes of the model come back.

    `picker`: chooses files and folders of the storage.
    """

    def __init__(self, model: JobModel, say: Language, picker: Picker) -> None:
        self._model, self._say, self._picker = model, say, picker
        self.unique = button(
            say("Make unique"),
            tooltip=say("Append eight random characters to the name"),
            on_click=self._make_unique,
        )
        self._virtual_cluster = self._choice("virtualCluster", "default")
        self._gpu_type = self._choice("gpuType", "")
        image = job_label(say, "image")
        self.image = SuggestField(
            image.title,
            lambda value: self._edit(("image",), value),
            help_text=image.help,
            placeholder=say("required, for example: {example}", example=EXAMPLE),
        )
        self._fields: dict[str, Field] = {
            "jobName": self._text_field("jobName", placeholder=say("required"), beside=[self.unique]),
            "image": self.image,
            "virtualCluster": self._virtual_cluster,
            "gpuType": self._gpu_type,
            "retryCount": self._retries(),
        }
        self.extras = ExtrasFields(say, self._edit_extra)
        self.browse = {name: self._browse_button(name) for name in _STORAGE}
        storage: dict[str, Field] = {
            name: self._text_field(name, when_blank=ABSENT, beside=[self.browse[name]]) for name in _STORAGE
        }
        self.roles = RoleList(say, lambda path, value: self._edit(("taskRoles", *path), value))
        self.envs = EnvList(say, lambda envs: self._edit(("jobEnvs",), dict(envs)), self._note_env_problem)
        self.debug = CheckField(say("Debug: a task that fails keeps its container"), self._set_debug)
        self.debug.add_class("pai-switch")
        self.more = widgets.Accordion(
            [widgets.VBox([*storage.values(), picker])],
            titles=(say("More: storage folders, registry credentials"),),
        )
        basics = [*self._fields.values()]
        self._storage = storage
        self._fields |= storage
        self.inner = widgets.VBox(
            [
                *basics,
                self.extras,
                self._title("taskRoles"),
                self.roles,
                self._title("jobEnvs"),
                self.envs,
                self.debug,
                self.more,
            ]
        )
        self.obstacle = widgets.HTML()
        self.back = button(
            say("Go back to the text that parsed last"), icon="undo", on_click=lambda: model.go_back(self)
        )
        super().__init__([self.obstacle, self.back, self.inner])
        self.offer({}, [])
        model.listen(lambda _source: self.load())
        self.load()

    def field(self, name: str) -> Field:
        """Return the input of a field of the job itself."""
        return self._fields[name]

    def load(self) -> None:
        """Show the job as it is now, or say why that cannot be."""
        obstacle = self._model.obstacle
        show(self.inner, obstacle is None)
        show(self.obstacle, obstacle is not None)
        show(self.back, self._model.text_error is not None)
        if obstacle is not None:
            self.obstacle.value = notice(self._say.of(obstacle), "warning")
            return
        config = self._model.config
        for name, field in self._fields.items():
            field.load(config.get(name, ABSENT))
        self.extras.load(config.get("extras", {}))
        self.roles.load(config.get("taskRoles", []))
        envs = config.get("jobEnvs", {})
        self.envs.load(envs)
        self.debug.load(envs.get(DEBUG) in (True, "true"))

    def offer(self, clusters: Mapping[str, VirtualClusterInfo], nodes: Sequence[NodeInfo]) -> None:
        """Offer the virtual clusters and GPU types that there are."""
        say = self._say
        self._virtual_cluster.offer([(name, name) for name in sorted(clusters)] or [("default", "default")])
        types = []
        for count in gpu_counts(nodes):
            template = (
                "{type}: {free} of {total} free (simulated)"
                if count.simulated
                else "{type}: {free} of {total} free"
            )
            types.append((say(template, type=count.type, free=count.free, total=count.total), count.type))
        self._gpu_type.offer([(say("any type"), ""), *types])

    def help_with_image(self, known: ImageHelp) -> None:
        """Offer the images used before; where tasks have no container, say that the image is not used."""
        self.image.suggest(known.used)
        if not known.needed:
            self.image.show_hint(self._say("Not used here: tasks run as processes of the machine itself."))

    def show_errors(self, errors: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
        """Put each error beside its input; give those (path, sentence) that have none."""
        left: dict[str, list[str]] = {}
        for path, sentences in errors.items():
            # (an entry of that list has no input of its own)
            left.setdefault(_AFTER if path.startswith(f"{_AFTER}[") else path, []).extend(sentences)
        for path, field in self._placed():
            field.show_errors(left.pop(path, ()))
        in_envs = [path for path in left if path == _ENVS or path.startswith((_ENVS + ".", _ENVS + "["))]
        self.envs.show_errors([sentence for path in in_envs for sentence in left.pop(path)])
        if any(path_text((name,)) in errors for name in self._storage):
            self.more.selected_index = 0
        return [(path, sentence) for path, sentences in left.items() for sentence in sentences]

    def _placed(self) -> Iterator[tuple[str, Field]]:
        for name, field in self._fields.items():
            yield path_text((name,)), field
        for name, field in self.extras.fields():
            yield path_text(("extras", name)), field
        for path, field in self.roles.fields():
            yield path_text(("taskRoles", *path)), field

    def _text_field(
        self,
        name: str,
        *,
        placeholder: str = "",
        when_blank: Any = "",
        beside: Sequence[widgets.Widget] = (),
    ) -> TextField:
        label = job_label(self._say, name)
        return TextField(
            label.title,
            lambda value: self._edit((name,), value),
            help_text=label.help,
            placeholder=placeholder,
            when_blank=when_blank,
            beside=beside,
        )

    def _browse_button(self, name: str) -> widgets.Button:
        text = self._say("Choose from the storage: {field}", field=job_label(self._say, name).title)
        return button(icon="folder-open", tooltip=text, on_click=lambda: self._browse(name, text))

    def _browse(self, name: str, text: str) -> None:
        value = self._model.config.get(name)
        self._picker.ask(
            "file" if name in _ONE_FILE else "folder",
            text,
            value if isinstance(value, str) else "",
            lambda uri: self._edit((name,), uri),
        )

    def _choice(self, name: str, blank: str) -> ChoiceField:
        label = job_label(self._say, name)
        return ChoiceField(
            label.title,
            lambda value: self._edit((name,), value),
            unknown=lambda value: self._say("{value} (not there at present)", value=value),
            help_text=label.help,
            blank=blank,
        )

    def _retries(self) -> IntegerField:
        label = job_label(self._say, "retryCount")
        return IntegerField(
            label.title,
            lambda value: self._edit(("retryCount",), value),
            help_text=label.help,
            placeholder=label.default,
        )

    def _title(self, name: str) -> widgets.Label:
        title = widgets.Label(job_label(self._say, name).title)
        title.add_class("pai-title")
        return title

    def _make_unique(self) -> None:
        self._edit(("jobName",), unique_name(self._model.config.get("jobName", "")))

    def _edit(self, path: Path, value: Any) -> None:
        self._model.edit(path, value, self)

    def _edit_extra(self, name: str, value: Any) -> None:
        """Change one of the extras; those that the form does not know stay, an empty object goes."""
        is_last = set(self._model.config.get("extras", {})) == {name}
        self._edit(("extras",) if value is ABSENT and is_last else ("extras", name), value)

    def _set_debug(self, wanted: bool) -> None:
        self._edit(("jobEnvs", DEBUG), True if wanted else ABSENT)

    def _note_env_problem(self, problem: Message | None) -> None:
        self._model.set_form_errors({_ENVS: problem} if problem is not None else {}, self)


def unique_name(name: Any) -> str:
    """Return the name with eight random characters behind it, in place of those it has had so far."""
    return f"{_UNIQUE_SUFFIX.sub('', str(name)) or 'job'}_{secrets.token_hex(4)}"
