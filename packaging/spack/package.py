# SPDX-License-Identifier: BSD-2-Clause
"""Recipe for Spack 1.x. packaging/README.md describes how to build a clone with it."""

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Tcam(CargoPackage):
    """A libfabric provider that emulates the tag matching of a NIC, and the command line tcam."""

    license("BSD-2-Clause")

    # The package has no download address yet: use `spack develop`.
    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("pkgconfig", type="build")
    # bindgen reads the headers of libfabric with libclang. tcam is linked to neither library.
    depends_on("llvm +clang", type="build")
    depends_on("libfabric@1.17:", type=("build", "run"))

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def build(self, spec, prefix):
        cargo("build", "--release", "--locked", *(f"-ptcam-{name}" for name in ("provider", "sites", "sites-large", "lab")))

    def install(self, spec, prefix):
        """Installs the program, the provider and the man pages. `cargo install` installs only the first."""
        providers = join_path(prefix.lib, "libfabric")
        for directory in (prefix.bin, providers, prefix.share.man.man1, prefix.share.man.man7):
            mkdirp(directory)
        install("target/release/tcam", prefix.bin)
        # libfabric opens files whose names end in `fi.so`.
        install("target/release/libtcam_fi.so", join_path(providers, "libtcam-fi.so"))
        install("target/release/libtcam_sites.so", join_path(providers, "libtcam-sites.so"))
        install("target/release/libtcam_sites_large.so", join_path(providers, "libtcam-sites-large.so"))
        install("docs/tcam.1", prefix.share.man.man1)
        install("docs/fi_tcam.7", prefix.share.man.man7)
