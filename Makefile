# SPDX-License-Identifier: BSD-2-Clause
# What people type. The work is done by cargo and by the scripts in tests/.

PREFIX ?= /usr/local
APP ?= fds
# Assigned, so that the environment has no effect: users install `release`.
PROFILE := release
# Where cargo puts the provider and tcam, and where libfabric/libtcam-fi.so is installed.
BUILT := $${CARGO_TARGET_DIR:-target}/$(PROFILE)
LIBDIR := $(PREFIX)/lib
# DESTDIR in a recipe: quoted, since it may contain spaces. PREFIX is not, since it may begin with ~.
TO = $(if $(DESTDIR),"$(DESTDIR)")

.PHONY: demo test nightly mutants build wheel test-impi asan tsan miri soak spawn slurm bench reproduce guide book install
.PHONY: install-built dist deb release

demo: ## first capacity experiment; APP=fds (default) or APP=lammps
	@tests/bench/demo.sh $(APP)

test: ## what must hold before a change goes in: some 15 minutes
	@tests/gate/test.sh

nightly: ## what make test leaves out, and all combinations: some 35 minutes; CI runs both
	@tests/nightly/nightly.sh

mutants: ## changes each line of some crates, and checks that a test fails, outside CI: some 18 hours
	@tests/nightly/mutants.sh all

build: ## what the tests run, into target/provider
	@tests/lib/build.sh

wheel: ## the source package and the wheel for PyPI, into target/wheel/dist
	@packaging/wheel/build.sh

test-impi: ## Intel MPI and its benchmarks, outside CI
	@tests/nightly/impi.sh

asan: ## C clients and bad days with AddressSanitizer
	@tests/nightly/asan.sh

tsan: ## C clients with ThreadSanitizer, outside CI
	@tests/nightly/tsan.sh

miri: ## the safe cores under Miri, outside CI
	@tests/nightly/miri.sh

soak: ## random operations on 8 ranks for half an hour, outside CI
	@tests/nightly/soak.sh

spawn: ## MPI_Comm_spawn and disconnect, 500 times each, outside CI
	@tests/gate/spawn.sh

slurm: ## runs and sweeps that srun starts, outside CI
	@tests/nightly/slurm.sh

bench: ## matching alone, calls, messages between processes, overlap, then through the MPIs
	@tests/bench/bench.sh

reproduce: ## papers/{colpnp,kmeans,hash,polling,tail-queues}.* and the verdicts in papers/papers.md, outside CI: 25 minutes, quiet
	@papers/reproduce.sh

guide: ## every command of docs/guide.md and docs/howto, as written
	@python3 tests/nightly/guide.py

book: ## the documents as a book, into target/book/html; needs mdBook
	@python3 packaging/book.py

install: ## PREFIX=/usr/local
	@sh -c '. tests/lib/setup.sh && need_cargo' tests/lib/setup.sh
	cargo build --profile $(PROFILE) -p tcam-provider -p tcam-sites -p tcam-sites-large -p tcam-lab
	@$(MAKE) --no-print-directory install-built

# The list of installed files, also of the tarball and the .deb.
install-built:
	install -D -m 644 "$(BUILT)/libtcam_fi.so" $(TO)$(LIBDIR)/libfabric/libtcam-fi.so
	install -D -m 644 "$(BUILT)/libtcam_sites.so" $(TO)$(LIBDIR)/libfabric/libtcam-sites.so
	install -D -m 644 "$(BUILT)/libtcam_sites_large.so" $(TO)$(LIBDIR)/libfabric/libtcam-sites-large.so
	install -D -m 755 "$(BUILT)/tcam" $(TO)$(PREFIX)/bin/tcam
	install -D -m 644 docs/fi_tcam.7 $(TO)$(PREFIX)/share/man/man7/fi_tcam.7
	install -D -m 644 docs/tcam.1 $(TO)$(PREFIX)/share/man/man1/tcam.1

dist: ## a tarball of an installation, into target/dist
	@packaging/dist.sh

deb: ## a package for Debian and Ubuntu, into target/dist
	@packaging/deb.sh

release: ## VERSION=1.2.3: commit, tag and files of a release; DRY_RUN=1 changes nothing here
	@packaging/release.sh $(VERSION)
