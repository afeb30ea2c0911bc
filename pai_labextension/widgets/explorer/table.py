"""The table of what is in a folder: sorted by a click on a title, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape

import ipywidgets as widgets

from pai_scheduler.client.storage.models import FileInfo

from ..background import at_home
from ..language import Language
from ..look import button, show
from ..times import when
from .listing import ROWS, Column, ListingPage, Look, arrange, page_of
from .words import size


class FileTable(widgets.VBox):
    """The entries of a folder.

    `on_open` is given the one whose name is pressed, `on_choose` is called when other ones are ticked.
    """

    def __init__(
        self, say: Language, on_open: Callable[[FileInfo], None], on_choose: Callable[[], None]
    ) -> None:
        self._say, self._on_open, self._on_choose = say, on_open, on_choose
        self._entries: Sequence[FileInfo] = ()
        self._complete, self._unread = False, False
        self._look = Look()
        self._page = page_of([], 0)
        self._chosen: dict[str, FileInfo] = {}
        self._quiet = False
        self.find = widgets.Text(
            placeholder=say("find in names"),
            tooltip=say("Show only what has this in its name"),
            continuous_update=True,
            layout=widgets.Layout(width="180px"),
        )
        # shared by the rows: each layout of its own is work for the browser
        narrow = widgets.Layout(width="20px")
        self.all = widgets.Checkbox(indent=False, tooltip=say("Choose all on this page"), layout=narrow)
        self.heads: dict[Column, widgets.Button] = {
            "name": button(say("Name"), on_click=lambda: self._sort("name")),
            "size": button(say("Size"), on_click=lambda: self._sort("size")),
            "modified": button(say("Modified"), on_click=lambda: self._sort("modified")),
        }
        for head in self.heads.values():
            head.add_class("pai-file-head")
        self.heads["size"].add_class("pai-file-size")
        self.rows = [_Row(say, narrow, self._pressed, self._ticked, index) for index in range(ROWS)]
        self.grid = widgets.Box([])
        self.grid.add_class("pai-files")
        self.empty = widgets.HTML()
        self.empty.add_class("pai-muted")
        self.before = button(
            icon="chevron-left", tooltip=say("Previous page"), on_click=lambda: self._turn(-1)
        )
        self.after = button(icon="chevron-right", tooltip=say("Next page"), on_click=lambda: self._turn(1))
        self.count = widgets.Label()
        pager = widgets.HBox(
            [self.find, self.before, self.count, self.after],
            layout=widgets.Layout(flex_flow="row wrap", align_items="center", overflow="visible"),
        )
        super().__init__([pager, self.grid, self.empty], layout=widgets.Layout(overflow="visible"))
        self.find.observe(at_home(lambda _change: self._search()), "value")
        self.all.observe(at_home(lambda _change: self._tick_all()), "value")
        self._paint()

    @property
    def chosen(self) -> list[FileInfo]:
        """Return what is ticked, on whichever page, in the order of names."""
        return [self._chosen[path] for path in sorted(self._chosen)]

    def begin(self) -> None:
        """Forget the folder: another one comes."""
        self._look = replace(self._look, find="", page=0)
        self._quiet = True
        self.find.value = ""
        self._quiet = False
        self._chosen = {}
        self.load([], complete=False)

    def load(self, entries: Sequence[FileInfo], *, complete: bool) -> None:
        """Show what is in the folder as far as it is known; what is still there stays ticked."""
        self._entries, self._complete, self._unread = entries, complete, False
        if complete and self._chosen:
            there = {entry.path: entry for entry in entries}
            self._chosen = {path: there[path] for path in self._chosen if path in there}
        self._paint()
        self._on_choose()

    def give_up(self) -> None:
        """Stop waiting for more: the folder cannot be read."""
        self._complete = self._unread = True
        self._paint()

    def _paint(self) -> None:
        say = self._say
        for column, head in self.heads.items():
            sorted_by = column == self._look.column
            head.icon = ("sort-down" if self._look.descending else "sort-up") if sorted_by else ""
        arranged = arrange(self._entries, self._look)
        page = self._page = page_of(arranged, self._look.page)
        for row, entry in zip(self.rows, page.entries, strict=False):
            row.show(entry, ticked=entry.path in self._chosen)
        shown = [cell for row in self.rows[: len(page.entries)] for cell in row.cells]
        titles = [self.all, *self.heads.values()]
        cells = (*titles, *shown) if shown else ()
        if self.grid.children != cells:
            self.grid.children = cells
        self._paint_all(page)
        self.count.value = self._counted(page)
        self.before.disabled, self.after.disabled = page.number == 0, page.number == page.count - 1
        for part in (self.before, self.count, self.after):
            show(part, page.count > 1 or not self._complete)
        show(self.find, len(self._entries) > ROWS)
        if page.total or self._unread:
            text = ""
        elif not self._complete:
            text = say("Reading the folder …")
        elif self._look.find:
            text = say("Nothing here has “{text}” in its name.", text=self._look.find)
        else:
            text = say("This folder is empty.")
        self.empty.value = escape(text)
        show(self.empty, bool(text))

    def _counted(self, page: ListingPage) -> str:
        if not page.total:
            return ""
        numbers = {
            "first": page.first + 1,
            "last": page.first + len(page.entries),
            "total": f"{page.total:,}",
        }
        if not self._complete:
            return self._say("{first} to {last} of {total} so far …", **numbers)
        return self._say("{first} to {last} of {total}", **numbers)

    def _paint_all(self, page: ListingPage) -> None:
        self._quiet = True
        self.all.value = bool(page.entries) and all(entry.path in self._chosen for entry in page.entries)
        self._quiet = False

    def _sort(self, column: Column) -> None:
        self._look = self._look.by(column)
        self._paint()

    def _turn(self, pages: int) -> None:
        self._look = replace(self._look, page=self._page.number + pages)
        self._paint()

    def _search(self) -> None:
        if not self._quiet:
            self._look = replace(self._look, find=self.find.value, page=0)
            self._paint()

    def _pressed(self, index: int) -> None:
        self._on_open(self._page.entries[index])

    def _ticked(self, index: int, wanted: bool) -> None:
        self._choose(self._page.entries[index], wanted)
        self._paint_all(self._page)
        self._on_choose()

    def _tick_all(self) -> None:
        if self._quiet:
            return
        for entry in self._page.entries:
            self._choose(entry, self.all.value)
        self._paint()
        self._on_choose()

    def _choose(self, entry: FileInfo, wanted: bool) -> None:
        if wanted:
            self._chosen[entry.path] = entry
        else:
            self._chosen.pop(entry.path, None)


class _Row:
    """The widgets of one row, which show another entry on the next page."""

    def __init__(
        self,
        say: Language,
        narrow: widgets.Layout,
        on_press: Callable[[int], None],
        on_tick: Callable[[int, bool], None],
        index: int,
    ) -> None:
        self._say = say
        self._quiet = False
        self.tick = widgets.Checkbox(indent=False, layout=narrow)
        self.name = button("-", on_click=lambda: on_press(index))
        self.name.add_class("pai-file-name")
        self.size, self.modified = widgets.Label(), widgets.HTML()
        self.size.add_class("pai-file-size")
        self.cells = (self.tick, self.name, self.size, self.modified)

        def ticked(_change: object) -> None:
            if not self._quiet:
                on_tick(index, self.tick.value)

        self.tick.observe(at_home(ticked), "value")

    def show(self, entry: FileInfo, *, ticked: bool) -> None:
        self._quiet = True
        self.tick.value = ticked
        self._quiet = False
        self.tick.tooltip = self._say("Choose {name}", name=entry.name)
        self.name.description = self.name.tooltip = entry.name
        self.name.icon = "folder" if entry.is_folder else "file-o"
        self.size.value = "" if entry.is_folder else size(entry.length)
        # a folder that nobody has changed yet has no time
        self.modified.value = when(entry.modified) if entry.modified else ""
