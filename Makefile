# Two commands matter: `make run` and `make test`.  Both install what is missing into .venv, from
# locks alone, so that two machines get the same bytes: locks/run.lock what running needs, and
# requirements.lock that and what the tests need.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:

VENV := .venv
BIN := $(VENV)/bin
# The first Python that is new enough and can make environments; `make install PYTHON=…` takes another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: install
install: $(VENV)/.project ## Install everything into .venv; quick when there is nothing to do.

# What a new environment gets last, so an interrupted one is made again.
$(BIN)/pip:
	@if [ -z "$(PYTHON)" ]; then
		echo "belfry needs Python 3.11 or newer, with venv; none was found on PATH." >&2
		exit 1
	fi
	$(PYTHON) -m venv $(VENV)

$(VENV)/.locked: requirements.lock | $(BIN)/pip
	@echo "Installing the locked packages into $(VENV) …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

$(VENV)/.project: pyproject.toml $(VENV)/.locked
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--no-build-isolation --editable .
	touch $@

# Of the same versions as requirements.lock, so that `make install` only adds to it.
$(VENV)/.runnable: pyproject.toml locks/run.lock | $(BIN)/pip
	@all=$$(grep -c '^[a-z].*==' locks/run.lock)
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r locks/run.lock | \
		awk -v all=$$all '/^(Collecting|Requirement already)/ { printf "\rInstalling %d of %d packages …", ++n, all; fflush() } END { print "" }'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable .
	touch $@

.PHONY: run
run: ## Run broker, registry and one worker until Ctrl-C; installs what that needs.
	@[ -e $(VENV)/.project ] || $(MAKE) --no-print-directory $(VENV)/.runnable
	exec $(BIN)/belfry dev

# So many processes divide the tests (tests/plugins/pure_first.py); 0: all in one, for a debugger.
# Two cores have room for three, since tests with brokers wait for a third to a half of their time.
# The fourth is for the simulator, which takes at the lowest priority what those leave, and helps then.
PROCESSES := 4
.PHONY: test
test: install ## Run all tests; those of whole processes start a broker of their own.
	@$(BIN)/python -m pytest -p tests.plugins.pure_first -n $(PROCESSES) --durations=50 --durations-min=8

.PHONY: fast
fast: install ## Run the tests that need seconds.
	@$(BIN)/python -m pytest -q tests/unit tests/property tests/attack tests/architecture

.PHONY: attack
attack: install ## Run all attacks, and what they do to others on a stack with TLS, logins, rights, claims.
	@ATTACKS=all $(BIN)/python -m pytest -q -s tests/attack tests/integration/test_promise_tenant_rights.py \
		tests/acceptance/test_hostile_tenants.py

SECONDS_OF_FUZZ := 60
DOOR := requests
.PHONY: fuzz
fuzz: install ## Feed arbitrary bytes to DOOR for a minute (SECONDS_OF_FUZZ=3600); requests headers bodies cursors policies crons rrules icalendars backups members rows answers events deliveries marks behind batches moves logs outputs indexes dayfiles schemas fields notes.
	@mkdir -p .fuzz/$(DOOR)
	seeds=tests/fuzz/corpus
	[ $(DOOR) = requests ] || seeds=tests/fuzz/seeds/$(DOOR)
	INPUTS=0 PYTHONPATH=app $(BIN)/python -m tests.fuzz.door $(DOOR) -timeout=10 -max_total_time=$(SECONDS_OF_FUZZ) .fuzz/$(DOOR) $$seeds

# So many inputs for each door; a door that a limit stops is told of, and the others go on.
INPUTS := 10000000
.PHONY: fuzz-all
fuzz-all: install ## Feed INPUTS inputs to each door, one door after the other (10000000: some hours).
	@failed=
	for door in policies cursors requests crons rrules icalendars backups members rows answers events deliveries marks behind batches moves logs outputs indexes dayfiles schemas fields notes bodies headers; do
		mkdir -p .fuzz/$$door
		seeds=tests/fuzz/corpus
		[ $$door = requests ] || seeds=tests/fuzz/seeds/$$door
		echo "$$door"
		INPUTS=$(INPUTS) PYTHONPATH=app $(BIN)/python -m tests.fuzz.door $$door -timeout=10 -verbosity=0 \
			-artifact_prefix=.fuzz/$$door- .fuzz/$$door $$seeds 2> .fuzz/$$door.log || failed="$$failed $$door"
	done
	[ -z "$$failed" ] || { echo "failed:$$failed; see .fuzz/*.log" >&2; exit 1; }

.PHONY: lint
lint: install ## Check style, types and the direction of imports.
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=app $(BIN)/lint-imports

.PHONY: format
format: install ## Format the code, and mend what can be mended by itself.
	@$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: docs
docs: install ## Make the reference pages and the tables of rooms' pages anew from the code.
	@$(BIN)/python -m belfry.telemetry.reference docs
	$(BIN)/python -m belfry.cli.reference > docs/cli.md
	$(BIN)/python -m belfry.process.asyncapi > docs/asyncapi.json
	$(BIN)/python -m belfry.api.routes.openapi > docs/openapi.json
	$(BIN)/python -m belfry.kafka.strimzi deploy/helm/belfry/files
	$(BIN)/python -m dashboards
	cp dashboards/alerts.yml dashboards/*.json deploy/helm/belfry/files/
	@$(BIN)/python -m tests.architecture.room_pages

LOCKED := UV_CUSTOM_COMPILE_COMMAND="make lock" uv pip compile --generate-hashes --universal --python-version 3.11 \
	--no-emit-index-url --quiet
# The locks of the product alone, of what builds it and of what audits it follow the lock of all.
.PHONY: lock
lock: ## Lock the newest allowed versions; needs uv.
	@$(LOCKED) --upgrade --extra dev-stack --extra claim-check --extra otel --extra mcp --extra ical --group dev pyproject.toml -o requirements.lock
	$(MAKE) locks

.PHONY: locks
locks: ## Make locks/ anew from requirements.lock; needs uv.
	@$(LOCKED) -c requirements.lock --no-annotate --extra otel --extra checkpoints pyproject.toml -o locks/product.lock
	$(LOCKED) -c <(grep -v ^python-dateutil= requirements.lock | sed '/--hash/d; s/ *\\$$//') --no-annotate --extra otel --extra checkpoints --extra s3 pyproject.toml -o locks/product-s3.lock
	$(LOCKED) -c requirements.lock --no-annotate --group build -o locks/build.lock
	$(LOCKED) -c requirements.lock --no-annotate --group audit -o locks/audit.lock
	$(LOCKED) -c requirements.lock --no-annotate --group site -o locks/site.lock
	$(LOCKED) -c requirements.lock --no-annotate --group chart -o locks/chart.lock
	$(LOCKED) -c requirements.lock --no-annotate --extra dev-stack --group build pyproject.toml -o locks/run.lock
	$(LOCKED) -c requirements.lock --no-annotate clients/python/pyproject.toml -o locks/client.lock
	$(LOCKED) --no-annotate --group mutants -o locks/mutants.lock
	$(LOCKED) --no-annotate --group s3 -o locks/s3.lock
	$(LOCKED) --no-annotate --no-deps --group helm -o locks/helm.lock
	$(LOCKED) --no-annotate --no-deps --group go -o locks/go.lock

# Tools whose packages are locked apart get an environment of their own.
AUDIT := $(VENV)/audit
SITE := $(VENV)/site
CHECKS := $(VENV)/chart
$(VENV)/%/.locked: locks/%.lock | $(BIN)/pip
	@$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

.PHONY: site
site: $(SITE)/.locked ## Make the documentation a site, dist/site; fails on a page or link that leads nowhere.
	@# Warnings have to be counted, so it is not quiet.
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict 2> >(grep -v '^INFO' >&2)
	found=$$(grep -o '"location"' dist/site/search/search_index.json | wc -l)
	echo "dist/site/index.html: $$(find dist/site -name '*.html' | wc -l) pages, the search knows $$found places"

.PHONY: site-version
site-version: site ## Put the site into dist/versions as this release, beside earlier ones that lie there.
	@$(BIN)/python deploy/site/versions.py $$($(BIN)/python -c 'import belfry; print(belfry.__version__)')

.PHONY: site-check
site-check: install site-version ## Look at the site by Chromium: selector of versions, search; fails where one leads nowhere.
	@$(BIN)/python deploy/site/look.py $$($(BIN)/python -c 'import belfry; print(belfry.__version__)')

.PHONY: sbom
sbom: $(AUDIT)/.locked ## Write dist/belfry.cdx.json: all that the product is made of (CycloneDX).
	@mkdir -p dist
	$(AUDIT)/bin/cyclonedx-py requirements locks/product.lock --pyproject pyproject.toml --mc-type application \
		--output-reproducible --of JSON -o dist/belfry.cdx.json 2> >(grep -v -i 'warn' >&2)
	echo "dist/belfry.cdx.json: $$(grep -c '"purl"' dist/belfry.cdx.json) components"

# The address of the repository, for links on an index.
URL :=
.PHONY: dist
dist: install sbom ## Build what a release publishes from the commit, into dist/; URL=https://host/owner/name.
	@PYTHONPATH=app:. $(BIN)/python -m deploy.release.build "$(URL)"

.PHONY: platforms
platforms: install ## Ask for which Pythons and platforms the locked packages have wheels; some minutes.
	@PYTHONPATH=app:. $(BIN)/python -m deploy.release.platforms

.PHONY: image
image: install sbom ## Build dist/belfry-image.tar, an OCI image, without Docker; needs root, mmdebstrap, binutils.
	@PYTHONPATH=app:. $(BIN)/python -m deploy.image.build

.PHONY: image-check
image-check: image ## Build the image, run a worker in it by namespaces of Linux, and see an event fire.
	@PYTHONPATH=app:. $(BIN)/python -m deploy.image.check

.PHONY: advisories
advisories: $(AUDIT)/.locked ## Look for known holes in the product's dependencies, where advisories can be reached.
	@.ci/advisories

.PHONY: secrets
secrets: $(AUDIT)/.locked ## Look for secrets in all files; .secrets.baseline lists the examples that are none.
	@git ls-files -z -- ':!*.lock' ':!.secrets.baseline' | xargs -0 $(AUDIT)/bin/detect-secrets-hook --baseline .secrets.baseline
	echo "no secrets"

# Tools of the chart, built from their modules; helm-unittest replaces a module of its own, which only
# a build in its own folder may.
TOOLS := .tools
HELM_VERSION := v3.22.0
UNITTEST_VERSION := v1.1.2
CHART := deploy/helm/belfry
KUBERNETES := 1.31.0 1.37.0
# Of Linux on amd64 alone.
LAYER := 4.3.1
HELM := $(if $(filter x86_64,$(shell uname -m)),$(TOOLS)/helm-$(LAYER),$(TOOLS)/helm-$(HELM_VERSION))
$(TOOLS)/helm-$(HELM_VERSION):
	@echo "Building helm $(HELM_VERSION), which takes minutes the first time …"
	GOBIN=$(CURDIR)/$(TOOLS) go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv $(TOOLS)/helm $@

$(TOOLS)/untt-$(UNITTEST_VERSION):
	@module=github.com/helm-unittest/helm-unittest@$(UNITTEST_VERSION)
	mkdir -p $(TOOLS)
	folder=$$(go mod download -json $$module | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	go build -C "$$folder" -o $(CURDIR)/$@ ./cmd/helm-unittest

.PHONY: chart
chart: $(HELM) $(TOOLS)/untt-$(UNITTEST_VERSION) ## Lint and test the chart with helm; needs Go, builds helm-unittest.
	@for values in $(CHART)/ci/*.yaml; do
		for version in $(KUBERNETES); do
			$(HELM) lint --strict --quiet --kube-version $$version -f $$values $(CHART)
		done
		echo "$$values: lint passes"
	done
	$(TOOLS)/untt-$(UNITTEST_VERSION) $(CHART)

# A server of S3's protocol for tests, and s3fs, which asks it.
S3_SERVER := $(TOOLS)/versitygw-v1.8.0
$(S3_SERVER): tests/s3/gateway/go.mod tests/s3/gateway/go.sum
	@echo "Building versitygw, which takes a minute or two the first time …"
	mkdir -p $(TOOLS)
	go build -C tests/s3/gateway -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ github.com/versity/versitygw/cmd/versitygw

.PHONY: s3
s3: $(S3_SERVER) $(VENV)/s3/.locked ## Build the server of S3 that tests start, once; needs Go.

# A Go from a wheel, where the machine's is missing or too old (`.ci/run`).
$(TOOLS)/go/bin/go: locks/go.lock | $(BIN)/pip
	@$(BIN)/python -m venv $(TOOLS)/go
	$(TOOLS)/go/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/go.lock
	touch $@

# A helm that need not be built: a wheel for Linux on amd64 carries it. Elsewhere the built one serves.
$(TOOLS)/helm-$(LAYER): locks/helm.lock | $(BIN)/pip
	@folder=$$(mktemp -d)
	trap 'rm -rf "$$folder"' EXIT
	mkdir -p $(TOOLS)
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		-r locks/helm.lock -d "$$folder"
	$(BIN)/python -m zipfile -e "$$folder"/*.whl "$$folder/wheel"
	tar -xzf "$$folder"/wheel/aws_cdk/*/_jsii/*.tgz -C "$$folder" package/lib/layer.zip
	$(BIN)/python -m zipfile -e "$$folder/package/lib/layer.zip" "$$folder/layer"
	install -m 755 "$$folder/layer/helm/helm" $@

# The classes by which Strimzi reads its resources: it has no definitions in a package.
$(TOOLS)/strimzi: deploy/helm/strimzi/pom.xml locks/strimzi.lock
	@rm -rf $@ $@.part
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$@.part
	(cd $@.part && sha256sum --quiet --strict --check $(CURDIR)/locks/strimzi.lock)
	mv $@.part $@

# What Docker Compose reads its files by; its version is in go.mod.
$(TOOLS)/compose-check: $(wildcard compose/check/*.go compose/check/go.*)
	@mkdir -p $(TOOLS)
	go build -C compose/check -o $(CURDIR)/$@ .

.PHONY: compose
compose: $(TOOLS)/compose-check ## Check compose/compose.yaml by the library that reads it for Docker Compose; needs Go.
	@compose/check/run.sh $<

.PHONY: manifests
manifests: install $(CHECKS)/.locked $(HELM) $(TOOLS)/strimzi ## Check what the chart renders: Kubernetes 1.31 to 1.37, KEDA, Prometheus' operator, Strimzi.
	@folder=$$(mktemp -d)
	trap 'rm -rf "$$folder"' EXIT
	$(BIN)/belfry acls worker --create-topics --as strimzi > "$$folder/worker.json"
	$(BIN)/belfry acls tenant payments --user payments --as strimzi > "$$folder/tenant.json"
	$(BIN)/belfry acls sink archive --tenant payments --as strimzi > "$$folder/sink.json"
	$(CHECKS)/bin/python deploy/helm/manifests.py $(HELM) $(TOOLS)/strimzi "$$folder"/*.json

.PHONY: clean
clean: ## Remove what tools leave behind; .venv and data stay.
	@rm -rf dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

.PHONY: connect-demo
connect-demo: install ## Run Kafka Connect beside belfry: fired events into a file and PostgreSQL.
	@$(BIN)/python compose/connect/demo.py

.PHONY: newcomer
newcomer: install ## Run docs/first-event.md in a fresh clone with an empty home, and tell how long each way took.
	@PYTHONPATH=app:. $(BIN)/python -m tests.newcomer

.PHONY: flink
flink: install ## Ask a Flink for what is in the tables of `belfry sql`; needs Java and Maven, fetches 154 MB.
	@PYTHONPATH=app:. $(BIN)/python -m tests.flink

.PHONY: bench
bench: install ## Measure all that docs/performance.md shows, RUNS times each; LONG=1 adds the curves.
	@benchmarks/run.sh

.PHONY: failover
failover: install ## Kill one of two workers ROUNDS times under load, and tell how late it made whom.
	@ROUNDS=$${ROUNDS:-20} $(BIN)/python -m pytest -q -s tests/acceptance/test_failover.py -k death

.PHONY: rolling
rolling: install ## Restart three workers one by one, ROUNDS times, and tell how late it made whom.
	@ROUNDS=$${ROUNDS:-6} $(BIN)/python -m pytest -q -s tests/acceptance/test_failover.py -k rolling

.PHONY: survive
survive: install ## Kill a worker ROUNDS times under load, and audit what came out.
	@ROUNDS=$${ROUNDS:-100} $(BIN)/python -m pytest -q -s tests/acceptance/test_survives_kill.py

.PHONY: webhook-kills
webhook-kills: install ## Kill a dispatcher KILLS times amid its posts, and count what arrived.
	@KILLS=$${KILLS:-20} $(BIN)/python -m pytest -q -s tests/integration/test_promise_webhooks.py -k killed

.PHONY: availability
availability: install ## Kill and restart workers for MINUTES, and tell what the canary says of them.
	@PYTHONPATH=app:. $(BIN)/python -m tests.acceptance.harness.availability $${MINUTES:-10} $${WORKERS:-2}

# The one on the path, else that of Debian's package of Prometheus, which is not installed for it.
PROMTOOL := $(or $(shell command -v promtool),$(TOOLS)/promtool)
PROMETHEUS := $(or $(shell command -v prometheus),$(TOOLS)/prometheus)
$(TOOLS)/promtool $(TOOLS)/prometheus &:
	@folder=$$(mktemp -d)
	trap 'rm -rf "$$folder"' EXIT
	mkdir -p $(TOOLS)
	(cd "$$folder" && apt-get download -qq prometheus 2> /dev/null)
	dpkg-deb --extract "$$folder"/prometheus_*.deb "$$folder/all"
	install -m 755 "$$folder"/all/usr/bin/{promtool,prometheus} $(TOOLS)

.PHONY: alerts
alerts: $(PROMTOOL) $(PROMETHEUS) ## Test each alert: silent until its condition holds, and told once it does.
	$(PROMTOOL) check rules dashboards/alerts.yml
	$(PROMTOOL) check config --syntax-only compose/prometheus.yml
	$(PROMTOOL) test rules tests/alerts/*.test.yml

# Linux and root: an outage needs a small disk of its own.
.PHONY: outages
outages: install $(PROMETHEUS) ## Plant ten outages, and tell what alert, page, doctor and log say of each; ONLY names some.
	@PYTHONPATH=app:. $(BIN)/python -m tests.outages $${ONLY:-}

.PHONY: chaos
chaos: install ## Strike two workers at every step by every signal, SEEDS times, and audit.
	@SEEDS=$${SEEDS:-1} $(BIN)/python -m pytest -q -s tests/chaos

.PHONY: restarts
restarts: install ## Restart three brokers one by one under load, ROUNDS times, and tell how late events were read.
	@PYTHONPATH=app:. $(BIN)/python -m tests.chaos.rolling $${ROUNDS:-1}

.PHONY: oracle
oracle: install ## Compare cron with a walk through UTC at every edge of every change of every zone's clock.
	@PYTHONPATH=app:. $(BIN)/python -m tests.property.cron_edges
	@ORACLE=all $(BIN)/python -m pytest -q tests/property/test_cron_oracle.py tests/property/test_cron_days.py \
		tests/property/test_left_out.py tests/property/test_calendars.py

.PHONY: crons
crons: install ## Compare CRONS random cron rules with cronsim, croniter, and a walk through their days.
	@CRONS=$${CRONS:-10000} $(BIN)/python -m pytest -q --timeout 600 tests/property/test_random_crons.py

.PHONY: rrules
rrules: install ## Compare RULES random rules of RFC 5545 with python-dateutil.
	@RULES=$${RULES:-100000} $(BIN)/python -m pytest -q tests/property/test_rrule_oracle.py

.PHONY: soak
soak: install ## Load two workers for HOURS, restart one over and over, audit; nothing may grow.
	@HOURS=$${HOURS:-1} $(BIN)/python -m pytest -q -s tests/soak

KILLS ?= 3
.PHONY: rescale
rescale: install ## Grow 4 partitions to 16 under load, leave all but 6 of them, with KILLS kills for each; audited. PLANT=1 loses a row.
	@KILLS=$(KILLS) SEED=$${SEED:-5} LOAD=$${LOAD:-150} PLANT=$(PLANT) $(BIN)/python -m pytest -q -s tests/rescale

.PHONY: simulate
simulate: install ## Play SEEDS seeds of the simulator, from FIRST on; ONLY names scenarios, BACKLOG requests lie there.
	@PYTHONPATH=app $(BIN)/python -m tests.simulation --seeds $${SEEDS:-1000} --first $${FIRST:-0} $${ONLY:+--only $$ONLY} $${WRITER:+--writer $$WRITER} $${BACKLOG:+--backlog $$BACKLOG}

.PHONY: protocol
protocol: install ## Check the models of the protocol by SPIN; DEEP=1 goes further, BUG=… tells what a planted bug does.
	@$(BIN)/python -m tests.protocol $${DEEP:+--deep} $${BUG:+--bug $$BUG}

# mutmut in an environment of its own, for it needs a later click; what the tests need stands behind it.
MUTANTS := $(VENV)/mutants
.PHONY: mutants
mutants: install $(MUTANTS)/.locked ## Change ROOM (tests/mutants/rooms.py) line by line; BUDGET seconds; ONLY, TESTS, SHOW, AGAIN, ONE_IN, MOST.
	@where='import sysconfig; print(sysconfig.get_path("purelib"))'
	$(BIN)/python -c "$$where" > "$$($(MUTANTS)/bin/python -c "$$where")/belfry.pth"
	$(MUTANTS)/bin/python -m tests.mutants $${ROOM:-firing} --seconds $${BUDGET:-600} \
		$${ONLY:+--only $$ONLY} $${TESTS:+--tests $$TESTS} $${SHOW:+--show} $${AGAIN:+--again} $${ONE_IN:+--one-in $$ONE_IN} $${MOST:+--most $$MOST}

.PHONY: fuzz-http
fuzz-http: install ## Ask a worker EXAMPLES times what each part of the HTTP document allows.
	@EXAMPLES=$${EXAMPLES:-300} $(BIN)/python -m pytest -q -s tests/acceptance/test_http_fuzz.py

.PHONY: bench-tenants
bench-tenants: install ## Measure what tenants do to each other; CROWD and POLICIES say how many.
	@benchmarks/tenants.sh

.PHONY: bench-restoring
bench-restoring: install ## Measure how long a worker without local state takes; PENDING, ROUNDS.
	@benchmarks/restoring.sh

.PHONY: bench-backups
bench-backups: install ## Measure `belfry backup` and `belfry restore`; SCHEDULES, ROUNDS, and TREE, another checkout that is measured in turn.
	@benchmarks/backups.sh

.PHONY: bench-webhooks
bench-webhooks: install ## Measure webhooks, and what hosts that hang do to others; POSTS, TARGETS.
	@benchmarks/webhooks.sh

.PHONY: bench-idle
bench-idle: install ## Count threads, memory and CPU of a worker that idles; PARTITIONS, SETTLE and SECONDS.
	@benchmarks/idle.sh

.PHONY: bench-profiles
bench-profiles: install ## Show which threads are busy where a figure misses its goal.
	@benchmarks/profiles.sh

.PHONY: bench-http
bench-http: install ## Measure HTTP while events fire; PENDING, FIRES and RATE say how much.
	@benchmarks/http.sh

.PHONY: bench-why
bench-why: install ## Measure `belfry why` over seven days of history; RECORDS and ROUNDS say how much.
	@benchmarks/why.sh

.PHONY: bench-peer
bench-peer: install ## Measure belfry beside a scheduler of Kafka Streams; ROUNDS, EVENTS, RATE, DURATION; needs Java and Maven.
	@benchmarks/peer.sh

.PHONY: bench-console
bench-console: install ## Measure the console's pages while events fire; PENDING, FIRES and CONSOLES say how much.
	@benchmarks/console.sh

.PHONY: screenshots
screenshots: install ## Make the pictures of docs/console.md anew, with Debian's Chromium.
	@mkdir -p docs/pictures
	PYTHONPATH=app:. $(BIN)/python -m tests.acceptance.harness.pictures docs/pictures
