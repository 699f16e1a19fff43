"""What a first start shows while it downloads: a bar for people, one line for everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn

# A context manager that yields a function taking the number of bytes that came in; one object is
# entered by several downloads at once.
Fetched = AbstractContextManager[Callable[[int], None]]


@contextmanager
def fetch_progress(title: str, total_bytes: int) -> Iterator[Fetched]:
    """Show the download of ``title`` on standard error as long as the context lasts."""
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"Fetching {title} ({total_bytes // 1_000_000} MB, the first time only)")
        yield nullcontext(lambda _bytes: None)
        return
    with _bar(console) as bar:
        task = bar.add_task(title, total=total_bytes)
        yield nullcontext(lambda count: bar.advance(task, count))


def _bar(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        console=console,
        transient=True,
    )
