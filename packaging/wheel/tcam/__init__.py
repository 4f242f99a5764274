# SPDX-License-Identifier: BSD-2-Clause
"""Capacity experiments on the match table of a NIC: the numbers of tcam as data frames.

    import tcam
    frames = tcam.read("tcam-trace")
    frames["queues"].groupby("queue")["high_water"].max()

``python -m tcam`` runs the command line, which ``python -m tcam --help`` documents.
"""

import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import warnings

__all__ = ["command", "read"]

#: Exit status of ``tcam show`` if ranks are missing or were cut short.
_INCOMPLETE = 3


def command():
    """Returns the path of the command line ``tcam`` that was installed with this module.

    Raises FileNotFoundError if there is none.
    """
    places = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
        # pip install --target
        pathlib.Path(__file__).resolve().parents[1] / "bin",
    ]
    for place in places:
        path = pathlib.Path(place) / "tcam"
        if os.access(path, os.X_OK):
            return str(path)
    path = shutil.which("tcam")
    if path is None:
        raise FileNotFoundError("the command tcam is neither beside this Python nor in PATH")
    return path


def read(directory, *options):
    """Reads what an experiment counted. Returns a dict of pandas data frames.

    ``directory`` is a recording (``tcam run --trace``, ``tcam answer``), a directory of reports (``tcam run
    --report``), or what ``tcam show --format parquet`` wrote. ``options`` are further options of ``tcam
    export``, such as ``"--partial"``. The frames are

    - ``queues``: a row for each rank and queue (``PRQ``, ``UMQ``): ``entries`` of the table, ``inserts``,
      ``searches``, ``spills``, ``high_water`` and other counts
    - ``kinds``: a row for each rank, queue and kind of traffic, with the reason of each spill
    - ``depths``: histograms of the entries that a search compared, a row for each bucket
    - ``lengths``: lengths of the queues over time; ``place`` is the table or the host
    - ``operations``: a row for each operation on a table; of recordings only
    - ``origin``: names and values that say where the numbers come from

    Raises ImportError if pandas or pyarrow is missing, and RuntimeError with the words of ``tcam`` if it
    cannot read the directory. Warns if ranks are missing.
    """
    try:
        import pandas
        import pyarrow  # noqa: F401: pandas reads Parquet with it
    except ImportError as error:
        why = "tcam.read needs pandas and pyarrow: pip install pandas pyarrow (the extra tcam[pandas])"
        raise ImportError(why) from error
    place = pathlib.Path(directory)
    if (place / "queues.parquet").is_file():
        return _frames(pandas, place)
    with tempfile.TemporaryDirectory(prefix="tcam-read-") as out:
        words = [command(), "show", "--format=parquet", "--out", out, *options, "--", os.fspath(place)]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        if done.returncode not in (0, _INCOMPLETE):
            raise RuntimeError(done.stderr.strip() or f"tcam show: exit status {done.returncode}")
        if done.returncode == _INCOMPLETE:
            warnings.warn(done.stderr.strip(), stacklevel=2)
        return _frames(pandas, pathlib.Path(out))


def _frames(pandas, place):
    return {path.stem: pandas.read_parquet(path) for path in sorted(place.glob("*.parquet"))}
