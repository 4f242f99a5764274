# SPDX-License-Identifier: BSD-2-Clause
"""The functions that pip calls to build the wheel (PEP 517): maturin, after a build of the provider.

TCAM_PROFILE is the profile of cargo (default: release). TCAM_GLIBC, such as 2.28, is the oldest glibc that
the files run with; it needs the packages cargo-zigbuild and ziglang. Otherwise it is this machine's glibc.
"""

import os
import pathlib
import platform
import shutil
import subprocess

import maturin
from maturin import *  # noqa: F403: the other hooks are maturin's

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
PROFILE = os.environ.get("TCAM_PROFILE") or "release"
GLIBC = os.environ.get("TCAM_GLIBC")
TRIPLE = f"{platform.machine()}-unknown-linux-gnu"

# pyproject.toml names this directory. maturin expects it even if it only reads metadata.
DATA = ROOT / "target" / "wheel" / "data"
DATA.mkdir(parents=True, exist_ok=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the provider, and the wheel around it."""
    os.environ[f"CARGO_PROFILE_{PROFILE.upper()}_STRIP"] = "symbols"
    words, made, arguments = ["cargo", "build"], TARGET, f"--profile {PROFILE}"
    if GLIBC:
        words, made = ["cargo-zigbuild", "zigbuild", "--target", f"{TRIPLE}.{GLIBC}"], TARGET / TRIPLE
        arguments += f" --zig --compatibility manylinux_{GLIBC.replace('.', '_')}"
    words += ["--locked", "--profile", PROFILE, "-p"]
    libraries = {name: made / PROFILE / f"libtcam_{name}.so" for name in ("fi", "sites", "sites_large")}
    # If cargo is configured to put them elsewhere, the files of an earlier build must not be taken.
    for library in libraries.values():
        library.unlink(missing_ok=True)
    for package in ("tcam-provider", "tcam-sites"):
        subprocess.run([*words, package], cwd=ROOT, check=True)
    # Without the standard library it is a seventh as large.
    small = os.environ | {f"CARGO_PROFILE_{PROFILE.upper()}_PANIC": "abort"}
    subprocess.run([*words, "tcam-sites-large"], cwd=ROOT, check=True, env=small)
    for source, place in (
        *((library, f"lib/libfabric/libtcam-{name.replace('_', '-')}.so") for name, library in libraries.items()),
        (ROOT / "docs" / "tcam.1", "share/man/man1/tcam.1"),
        (ROOT / "docs" / "fi_tcam.7", "share/man/man7/fi_tcam.7"),
    ):
        copy = DATA / "data" / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    os.environ["MATURIN_PEP517_ARGS"] = arguments
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
