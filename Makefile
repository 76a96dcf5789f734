# Bireme. `make` prints what there is to do.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# Static everywhere, and no C compiler needed on a bare machine.
export CGO_ENABLED := 0

# A tag names a release; between releases it is VERSION plus the commit.
VERSION := $(shell git describe --tags --dirty 2>/dev/null || \
	{ cat VERSION 2>/dev/null || echo dev; git rev-parse --short HEAD 2>/dev/null | sed 's/^/+g/'; } | tr -d '\n')
LDFLAGS := -s -w -X main.version=$(VERSION)
MAINS := $(sort $(dir $(wildcard cmd/*/*.go)))

DIR ?= bin/links
PREFIX ?= /usr/local
SEED ?=

.PHONY: help
help: ## print this list
	@echo "Bireme $(VERSION). Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The linker writes through a mapping, page by page, and so the file lies in the page cache; a copy lies there in large pieces,
# from which a command starts half a millisecond sooner.
.PHONY: build
build: ## build every program into bin/ (static, no cgo)
	@mkdir -p bin
	@$(if $(MAINS),$(GO) build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(addprefix ./,$(MAINS:/=)) && \
		for f in $(notdir $(MAINS:/=)); do cp bin/$$f bin/.$$f && mv -f bin/.$$f bin/$$f; done && \
		echo "built into bin/: $(notdir $(MAINS:/=)) ($(VERSION))",echo "nothing under cmd/ to build yet")

.PHONY: demo
demo: build ## start a one-node cluster, run a Slurm script and a YAML task, clean up
	@scripts/demo.sh

.PHONY: links
links: build ## make the Slurm command names as links in DIR (default bin/links)
	@mkdir -p '$(DIR)'
	@bin/bireme links '$(DIR)'

.PHONY: test
test: build ## check and every test, with PostgreSQL and, as root, real processes and cgroups
	@scripts/prereqs.sh
	@scripts/with-postgres.sh scripts/test.sh

.PHONY: test-bare
test-bare: ## make demo and make test on a bare Debian in namespaces of its own (root)
	@scripts/test-bare.sh

.PHONY: test-long
test-long: build ## make test in its long form: soak runs and full matrices, for hours
	@scripts/prereqs.sh
	@BIREME_SOAK=1 BIREME_SEED='$(SEED)' BIREME_TEST_TIMEOUT=4h scripts/with-postgres.sh scripts/test.sh

.PHONY: install
install: build ## install programs, systemd units and manual pages below DESTDIR and PREFIX (default /usr/local)
	@install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/lib/systemd/system' '$(DESTDIR)$(PREFIX)/lib/sysusers.d' \
		'$(DESTDIR)$(PREFIX)/lib/tmpfiles.d' '$(DESTDIR)$(PREFIX)/share/doc/bireme' \
		'$(DESTDIR)$(PREFIX)/share/man/man1' '$(DESTDIR)$(PREFIX)/share/man/man8'
	@install -m 755 $(addprefix bin/,$(notdir $(MAINS:/=))) '$(DESTDIR)$(PREFIX)/bin'
	@install -m 644 packaging/systemd/*.service '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	@install -m 644 packaging/systemd/bireme.sysusers.conf '$(DESTDIR)$(PREFIX)/lib/sysusers.d/bireme.conf'
	@install -m 644 packaging/systemd/bireme.tmpfiles.conf '$(DESTDIR)$(PREFIX)/lib/tmpfiles.d/bireme.conf'
	@bin/bireme man > '$(DESTDIR)$(PREFIX)/share/man/man1/bireme.1'
	@bin/biremed man > '$(DESTDIR)$(PREFIX)/share/man/man8/biremed.8'
	@install -m 644 docs/install.md '$(DESTDIR)$(PREFIX)/share/doc/bireme'
	@echo "installed below $(DESTDIR)$(PREFIX)"

.PHONY: packages
packages: ## build deb, rpm (amd64, arm64) and an OCI image into dist/, without root or Docker
	@VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' GO='$(GO)' scripts/packages.sh

.PHONY: check
check: ## format, vet, lint, import graph and sizes: what `make test` does first
	@scripts/check.sh

.PHONY: bench
bench: build ## print one table of figures, each beside this machine's own limit
	@scripts/prereqs.sh
	@scripts/bench-prereqs.sh
	@BIREME_BIN='$(CURDIR)/bin' GO='$(GO)' $(GO) run ./bench $(ARGS)

.PHONY: bench-slurm
bench-slurm: build ## the same work on Debian's Slurm in the same run, with ratios
	@BIREME_BIN='$(CURDIR)/bin' $(GO) run ./bench -slurm $(ARGS)

.PHONY: soak
soak: build ## the long fault run; SEED=n repeats one
	@scripts/prereqs.sh
	@BIREME_BIN='$(CURDIR)/bin' BIREME_SOAK=1 BIREME_SEED='$(SEED)' scripts/with-postgres.sh \
		$(GO) test -p 1 -tags e2e -count=1 -timeout 4h -v ./test/faults/... ./test/hostile/...
	@BIREME_SOAK=1 BIREME_SEED='$(or $(SEED),1)' $(GO) test -count=1 -timeout 2h -v -run TestHostileBodies ./internal/server

.PHONY: clean
clean: ## remove what was built
	@rm -rf bin dist
