# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0

GO ?= go

# The libraries and the plugin: what is ours and no program. allocator/conformance only tests one of them.
LIBRARIES = $(shell $(GO) list ./apis/... ./cel/... ./allocator/... ./deviceattributes/... ./internal/draw/... ./internal/topology/... ./placement/... ./plugin/... ./admission/... | grep -v /allocator/conformance)

# Race detector for them. Of what pulls in Kubernetes servers it is the plugin only, which shares
# informers' objects with a whole scheduler: building that with the detector takes some minutes the
# first time. The commands would take many times as long; so do the enumerations of cel/device/bound and of
# allocator/incremental, whose values the tests of allocator share between goroutines.
# TEST_RACE_PACKAGES are those of the module of tests: tests of libraries on a real API server, and the example driver.
TEST_RACE_PACKAGES = $(addprefix ./integration/placement/, admission binding controller) ./topologydriver ./topologydriver/cdi ./topologydriver/checkpoint
# The servers of kubectl celset serve and the watches behind it are concurrent, too.
RACE_PACKAGES = $(shell $(GO) list $(LIBRARIES) | grep -vE '/(cel/device/bound(/normal)?|allocator/incremental)$$'; $(GO) list ./cmd/kubectl-celset/serve ./internal/clusterstate/watching ./internal/page)

.PHONY: help playground playground-serve demo demo-placement demo-fleet demo-real test nightly test-bin test-race test-others test-older test-cases test-coverage coverage test-guarantee e2e skew bin up up-hub build lint lint-fix tidy fuzz fuzz-expensive bench bench-rows perf trace soak soak-preemption fleet faults clean generate images release editor site generate-docs

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# Compiling takes minutes the first time, and the go command says nothing meanwhile. As in
# test/controlplane: no symbols, and compilers that collect garbage less often.
DEVCLUSTER = $(or $(CELSET_BIN),bin)/devcluster
devcluster = @GOGC=$(or $(GOGC),400) hack/announce.sh "compiling test/devcluster: about five minutes the first time" $(GO) build -C test -ldflags="-s -w" -o $(abspath $(DEVCLUSTER)) ./devcluster

demo: ## a local cluster, and what celset is for on it
	$(devcluster)
	$(DEVCLUSTER) demo

demo-placement: ## a local hub, and how celset selects clusters on it
	$(devcluster)
	$(DEVCLUSTER) demo placement

demo-fleet: ## a local hub and three clusters, and why it takes sets of devices to select one
	$(devcluster)
	$(DEVCLUSTER) demo fleet

demo-real: ## a local node that runs containers, and one that names its four connected devices (Linux, as root)
	$(devcluster)
	$(DEVCLUSTER) demo real

# What decides whether a change lands, in half an hour: the same cases in each run, each package
# once, and no time that is measured. "make nightly" has the rest.
test: ## all that a change must pass: tests, an older Kubernetes, linters, demos
	@TIMEOUT=30m hack/pieces.sh test-bin test-race test-others test-older lint demo demo-placement demo-fleet

# Its seed decides about all that is random: NIGHTLY=... has a night again.
override NIGHTLY := $(or $(NIGHTLY),$(shell date +%s))
nightly: ## many and other random cases, faults, the guarantee by time, all minors, containers; hours
	@echo "CELSET_NIGHTLY=$(NIGHTLY)"
	@CELSET_NIGHTLY=$(NIGHTLY) FAULTS=10m FAULTS_SEED=$(NIGHTLY) FUZZTIME=5m SOAK=20m CELSET_SOAK_NODES=60 SOAK_PREEMPTION_LOG=bin/soak-preemption.log hack/pieces.sh test-bin test-cases test-coverage test-guarantee skew e2e demo-real faults soak-preemption fuzz-expensive

# Tests that hang end after that, with the stacks of what they wait for. It is no measure of how long
# they take, which depends on the machine, and on what it has built before: at night some build
# programs, which takes minutes.
TIMEOUT ?= 2h

# What "go test" has go vet look for is looked for by "make lint", too, and takes a seventh of all compiling.
TEST_FLAGS = -vet=off -timeout $(TIMEOUT)

# Programs that tests run, built once, so that each test finds them.
test-bin: bin bin/golangci-lint bin/actionlint bin/helm bin/controller-gen bin/schemas
	@$(DEVCLUSTER) build $(foreach server,kube-apiserver kube-controller-manager,$(server)-$(firstword $(SKEW)))

test-race:
	$(GO) test -race -count=1 $(TEST_FLAGS) $(RACE_PACKAGES)
	$(GO) test -C test -race -count=1 $(TEST_FLAGS) $(TEST_RACE_PACKAGES)

# Most of what runs in parallel waits for what a scheduler does after seconds.
test-others:
	$(GO) test -count=1 -parallel 8 $(TEST_FLAGS) $$($(GO) list ./... | grep -vxF "$$(printf '%s\n' $(RACE_PACKAGES))")
	$(GO) test -C test -count=1 -parallel 8 $(TEST_FLAGS) $$($(GO) list -C test ./... | grep -vxF "$$($(GO) list -C test $(TEST_RACE_PACKAGES))")

# The stories of the KEP and one of Placements.
test-older:
	CELSET_KUBERNETES=$(firstword $(SKEW)) $(GO) test -C test -count=1 $(TEST_FLAGS) ./integration ./integration/placement -run '^(TestExamples|TestStories)$$'

# Everything without the race detector, with the cases of the night.
test-cases:
	$(GO) test -count=1 -parallel 8 $(TEST_FLAGS) ./...
	$(GO) test -C test -count=1 -parallel 8 $(TEST_FLAGS) ./...

# What tests reach of the packages that are ours and no program, compared with what is recorded in
# test/coverage. With the cases of landing, which are the same every time.
COVERAGE ?= bin/coverage.out
COVERAGE_FLAGS ?=
# Packages whose tests on an API server are in the module of tests.
COVERED_ELSEWHERE = github.com/celset/celset/placement/admission,github.com/celset/celset/placement/binding,github.com/celset/celset/placement/controller,./topologydriver,./topologydriver/cdi,./topologydriver/checkpoint
# The package above an internal package has most of its tests.
test-coverage:
	@mkdir -p $(dir $(COVERAGE))
	CELSET_NIGHTLY= $(GO) test -count=1 $(TEST_FLAGS) -coverprofile=$(COVERAGE) $$(printf '%s\n' $(LIBRARIES) | grep -vE 'celset/((allocator|placement)(/internal/.*)?|cel/device/bound(/.*)?)$$')
	for of in ./allocator,./allocator/internal/... ./placement,./placement/internal/... ./cel/device/bound/...; do \
		CELSET_NIGHTLY= $(GO) test -count=1 $(TEST_FLAGS) -coverpkg=$$of -coverprofile=$(COVERAGE).part $$(echo $$of | tr , ' ') || exit; \
		tail -n +2 $(COVERAGE).part >> $(COVERAGE); \
	done
	CELSET_NIGHTLY= $(GO) test -C test -count=1 $(TEST_FLAGS) -coverpkg=$(COVERED_ELSEWHERE) -coverprofile=$(abspath $(COVERAGE)).part $(TEST_RACE_PACKAGES)
	tail -n +2 $(COVERAGE).part >> $(COVERAGE)
	$(GO) test -C test ./coverage -run TestNoPackageIsTestedLess -count=1 -profile=$(abspath $(COVERAGE)) $(COVERAGE_FLAGS)

coverage: ## record how much of each package its tests reach; a fall fails the nightly run
	$(MAKE) test-coverage COVERAGE_FLAGS=-update

# By itself, because it measures what tenants can do to each other's delays; -v for the table.
test-guarantee:
	CELSET_REDTEAM=all $(GO) test -C test -count=1 $(TEST_FLAGS) -v ./redteam

# Tests on API servers and controller managers of older versions, and on those of go.mod: with the
# defaults of each, and those of features of DRA once more with the features on that it has. -v for
# what is skipped. With the cases of landing: schedulers are killed at each write, not 200 times.
CURRENT = $(shell sed -n 's|^\tk8s.io/kubernetes v\(1\.[0-9]*\).*|\1|p' go.mod)
SKEW ?= 1.34 1.35 1.36 $(CURRENT)
SKEW_PACKAGES = ./integration ./integration/placement/... ./integration/twoschedulers ./chart ./versions ./rollout ./cmd/celset-webhook ./topologydriver
SKEW_FEATURES = Constraint|Bind|Devices|Extended|Taint|Variants|Stories/(admin|alternatives|mistakes|preemption-held)
skew: ## the user stories on each version of Kubernetes, SKEW
	@set -e; for minor in $(SKEW); do \
		echo "--- Kubernetes $$minor"; export CELSET_KUBERNETES=$$minor CELSET_NIGHTLY=; \
		[ $$minor != $(CURRENT) ] || export CELSET_KUBERNETES=; \
		$(GO) test -C test -v -count=1 $(TEST_FLAGS) $(SKEW_PACKAGES); \
		CELSET_KUBERNETES_FEATURES=on $(GO) test -C test -v -count=1 $(TEST_FLAGS) ./integration -run '$(SKEW_FEATURES)'; \
	done

# -v for the tests that run, and for the reason if none does.
e2e: ## the user stories up to their containers, and the images of a release, on a local node (Linux, as root)
	CELSET_E2E=1 $(GO) test -C test -v -count=1 $(TEST_FLAGS) ./e2e

bin: ## build the binaries of the local cluster and the commands of this module into bin/
	$(devcluster)
	$(DEVCLUSTER) build

# UP has flags, such as UP="--webhook --leader-elect --feature-gates=DRADeviceTaints=true".
up: ## run a local cluster with celset-scheduler until interrupted; UP=--help lists its flags
	$(devcluster)
	$(DEVCLUSTER) up $(UP)

up-hub: ## run a local hub with 200 clusters and celset-placement until interrupted
	$(devcluster)
	$(DEVCLUSTER) up hub $(UP)

# The site is in dist/playground. It needs no server of its own: any server of static files serves it.
playground: ## build the page about devices with celset in WebAssembly, as a static site
	$(GO) run -C test ./playground

PLAYGROUND_ADDRESS ?= 127.0.0.1:8081
playground-serve: ## build the playground and serve it on this machine, at PLAYGROUND_ADDRESS
	$(GO) run -C test ./playground -serve $(PLAYGROUND_ADDRESS)

build: ## compile everything
	$(GO) build ./...
	$(GO) build -C test ./...

bin/schemas: $(wildcard hack/tools/controller-gen/go.mod hack/tools/controller-gen/schemas/*.go)
	$(GO) build -C hack/tools/controller-gen -o $(CURDIR)/$@ ./schemas

bin/controller-gen: hack/tools/controller-gen/go.mod
	$(GO) build -C hack/tools/controller-gen -o $(CURDIR)/$@ sigs.k8s.io/controller-tools/cmd/controller-gen
	@touch $@

# ClusterClaims are objects of managed clusters; a hub has none.
OCM_TYPES = open-cluster-management.io/api/cluster
PLACEMENT_CRDS ?= manifests/placement/crds
PROFILE_TYPES = sigs.k8s.io/cluster-inventory-api/apis/v1alpha1
PROFILE_CRDS ?= manifests/placement/profile-crds
SCHEDULER_CRDS ?= manifests/scheduler/crds
DEEPCOPY ?= apis/celset/v1alpha1
generate: bin/controller-gen ## write what is generated: the CRDs of DeviceAttributes, Placements and ClusterProfiles, from the types that go.mod names
	rm -f $(SCHEDULER_CRDS)/celset.*.yaml
	bin/controller-gen crd:headerFile=hack/crd-header.txt paths=./apis/celset/v1alpha1 output:crd:dir=$(SCHEDULER_CRDS)
	bin/controller-gen object:headerFile=hack/go-header.txt paths=./apis/celset/v1alpha1 output:object:dir=$(DEEPCOPY)
	rm -f $(PLACEMENT_CRDS)/cluster.*.yaml
	bin/controller-gen crd:headerFile=hack/crd-header.txt $(foreach version,v1 v1alpha1 v1beta1 v1beta2,paths=$(OCM_TYPES)/$(version)) output:crd:dir=$(PLACEMENT_CRDS)
	rm $(PLACEMENT_CRDS)/cluster.open-cluster-management.io_clusterclaims.yaml
	rm -f $(PROFILE_CRDS)/multicluster.*.yaml
	bin/controller-gen crd:headerFile=hack/crd-header.txt paths=$(PROFILE_TYPES) output:crd:dir=$(PROFILE_CRDS)
	$(MAKE) schemas

SCHEMAS ?= schemas
.PHONY: schemas
schemas: bin/schemas ## write the JSON schemas of the kinds, from their Go types
	bin/schemas $(SCHEMAS) $(PLACEMENT_CRDS)/cluster.*.yaml

editor: ## build the editor of the web page from web/editor (needs npm)
	cd web/editor && npm ci --ignore-scripts --no-audit --no-fund && npm run build

generate-docs: ## write what is generated into the pages in docs
	$(GO) test -C test ./docs -run 'TestHardware|TestVersions|TestLimits|TestChart|TestPictures' -update

# golangci-lint with the linter of Kubernetes for API types, which is a plugin.
bin/golangci-lint: hack/tools/golangci-lint/go.mod
	$(GO) build -C hack/tools/golangci-lint -o $(CURDIR)/$@ sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter
	@touch $@

bin/actionlint: hack/tools/actionlint/go.mod
	$(GO) build -C hack/tools/actionlint -o $(CURDIR)/$@ github.com/rhysd/actionlint/cmd/actionlint
	@touch $@

# With one version of Go, and no other, since what is compressed depends on it: that of hack/tools/ko.
RELEASE_TOOLCHAIN = $(shell sed -n 's/^toolchain //p' hack/tools/ko/go.mod)
RELEASE_GO = GOTOOLCHAIN=$(RELEASE_TOOLCHAIN) $(GO)

bin/helm: hack/tools/helm/go.mod
	$(RELEASE_GO) build -C hack/tools/helm -o $(CURDIR)/$@ helm.sh/helm/v4/cmd/helm
	@touch $@

# Without the ways to find targets, which pull in the libraries of every cloud and are no part of a
# rule.
bin/promtool: hack/tools/promtool/go.mod
	$(GO) build -C hack/tools/promtool -tags remove_all_sd -o $(CURDIR)/$@ github.com/prometheus/prometheus/cmd/promtool
	@touch $@

bin/ko: hack/tools/ko/go.mod
	$(RELEASE_GO) build -C hack/tools/ko -o $(CURDIR)/$@ github.com/google/ko
	@touch $@

bin/crane: hack/tools/ko/go.mod
	$(GO) build -C hack/tools/ko -o $(CURDIR)/$@ github.com/google/go-containerregistry/cmd/crane
	@touch $@

KUBECTL = $(or $(CELSET_BIN),bin)/kubectl
$(KUBECTL): go.mod
	$(devcluster)
	$(DEVCLUSTER) build kubectl
	@touch $@

# Programs that run in clusters. KO_DOCKER_REPO is the registry; ko.local and
# kind.local are for a local Docker.
IMAGES ?= ./cmd/celset-scheduler ./cmd/celset-placement ./cmd/celset-webhook github.com/celset/celset/test/topologydriver/celset-topology-driver
IMAGE_TAG ?= dev
images: bin/ko ## build and push container images to KO_DOCKER_REPO
	@test -n "$(KO_DOCKER_REPO)" || { echo "set KO_DOCKER_REPO to a registry, such as registry.example.com/celset"; exit 1; }
	hack/ko.sh build --base-import-paths --tags=$(IMAGE_TAG) $(IMAGES)

# The registry is where images and chart are going to be; nothing is pushed to it.
VERSION ?=
REGISTRY ?= ghcr.io/celset
DIST ?= dist
PLATFORMS ?= linux/amd64,linux/arm64
PLUGIN_PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
REVISION ?= $(shell git rev-parse HEAD)
release: bin/ko bin/helm $(KUBECTL) ## all files of the release VERSION, into dist; twice gives the same bytes
	@VERSION='$(VERSION)' REGISTRY='$(REGISTRY)' DIST='$(DIST)' IMAGES='$(IMAGES)' PLATFORMS='$(PLATFORMS)' PLUGIN_PLATFORMS='$(PLUGIN_PLATFORMS)' \
		SOURCE_DATE_EPOCH='$(SOURCE_DATE_EPOCH)' REVISION='$(REVISION)' GOTOOLCHAIN='$(RELEASE_TOOLCHAIN)' KUBECTL='$(KUBECTL)' hack/release.sh

# Without shellcheck and pyflakes, which are no Go: the scripts in workflows are one line each.
lint: bin/golangci-lint bin/actionlint ## static checks, of workflows and of prose too
	bin/actionlint -shellcheck= -pyflakes=
	$(GO) test -C test $(TEST_FLAGS) ./layout -run '^TestProse$$'
	bin/golangci-lint run ./...
	cd test && ../bin/golangci-lint run ./...
	$(GO) mod tidy -diff
	cd test && $(GO) mod tidy -diff

lint-fix: bin/golangci-lint ## format, and fix what can be fixed
	bin/golangci-lint run --fix ./...
	cd test && ../bin/golangci-lint run --fix ./...

tidy: ## tidy go.mod and test/go.mod
	$(GO) mod tidy
	cd test && $(GO) mod tidy

FUZZTIME ?= 60s
fuzz: fuzz-expensive ## run each fuzz target for FUZZTIME
	$(GO) test ./allocator -run '^$$' -fuzz FuzzSameAsExhaustive -fuzztime $(FUZZTIME) -fuzzminimizetime 10x
	$(GO) test ./apis/celset/v1alpha1 -run '^$$' -fuzz FuzzDecode -fuzztime $(FUZZTIME)
	$(GO) test ./apis/config/v1alpha1 -run '^$$' -fuzz FuzzDecodeArgs -fuzztime $(FUZZTIME)
	$(GO) test ./cel/device/bound -run '^$$' -fuzz FuzzBoundsAreSound -fuzztime $(FUZZTIME) -fuzzminimizetime 10x
	$(GO) test ./allocator/conformance -run '^$$' -fuzz FuzzSameAsUpstream -fuzztime $(FUZZTIME) -fuzzminimizetime 10x

fuzz-expensive: ## search for expressions that take more than they cost, for FUZZTIME
	$(GO) test -C test ./internal/redteam/expensive -run '^$$' -fuzz FuzzExpensive -fuzztime $(FUZZTIME) -fuzzminimizetime 10x

BENCHTIME ?= 200ms
bench: ## benchmarks, in benchstat's format, each for BENCHTIME
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 2h ./cel/... ./allocator
	$(GO) test -C test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 2h ./perf

ROWS_COUNT ?= 5
bench-rows: ## what a decision of a Placement costs for each cluster, in benchstat's format
	GOMAXPROCS=1 $(GO) test ./placement -run '^$$' -bench 'BenchmarkRows' -benchmem -benchtime $(BENCHTIME) -count $(ROWS_COUNT) -timeout 1h

# The names of benchmarks and workloads, as for "go test -bench". What scheduler_perf writes, metrics of
# each workload on one line, goes to PERF_RESULTS, with shorter names of those of its metrics that
# benchstat is to compare; logs go beside it. More than one run: PERF_COUNT.
PERF ?= PerfScheduling
PERF_RESULTS ?= bin/perf.txt
PERF_COUNT ?= 1
perf: ## whole schedulers in scheduler_perf, an hour, in benchstat's format; goes to PERF_RESULTS
	mkdir -p $(PERF_RESULTS).logs
	ARTIFACTS=$(abspath $(PERF_RESULTS).logs) $(GO) test -C test ./perf/scheduler_perf -run '^$$' -bench '$(PERF)' -count $(PERF_COUNT) -timeout 0 > $(PERF_RESULTS).logs/output.txt
	sed -nE 's|scheduler_scheduling_attempt_duration_ms/Perc|attempt-ms/p|g; /^(goos|goarch|pkg|cpu|Benchmark)/p' $(PERF_RESULTS).logs/output.txt > $(PERF_RESULTS)

trace: ## claims come and go in simulated time, in benchstat's format
	@$(GO) test -C test ./perf/trace -run '^$$' -bench . -benchtime 1x -timeout 0

SOAK ?= 30m
SOAK_LOG ?= docs/performance/soak.log
soak: ## pods come and go on 1,000 nodes for SOAK; docs/performance.md sums the log up
	mkdir -p $(dir $(SOAK_LOG))
	CELSET_SOAK=$(SOAK) CELSET_SOAK_LOG=$(abspath $(SOAK_LOG)) $(GO) test -C test ./soak -run 'TestSoak$$' -count=1 -timeout 0 -v

SOAK_PREEMPTION_LOG ?= docs/performance/preemption.log
soak-preemption: ## pods of three priorities come and go on 200 nodes for SOAK while schedulers and the API server are killed
	mkdir -p $(dir $(SOAK_PREEMPTION_LOG))
	CELSET_SOAK_PREEMPTION=$(SOAK) CELSET_SOAK_LOG=$(abspath $(SOAK_PREEMPTION_LOG)) $(GO) test -C test ./soak -run 'TestSoakPreemption$$' -count=1 -timeout 0 -v

FLEET ?= 20000/500
fleet: ## celset-placement over FLEET clusters/Placements on a local API server, some minutes
	CELSET_FLEET=$(FLEET) $(GO) test -C test ./hub/scale -run 'TestFleet$$' -count=1 -timeout 0 -v

# Things go wrong in an order that is drawn from FAULTS_SEED. What a run that failed printed about its seed runs it
# again, as far as timing allows. Of the time for claims, half is without the guard against double allocation and half
# with it; all that can go wrong does once at least, also if FAULTS is short.
FAULTS ?= 2h
FAULTS_SEED ?=
FAULTS_LOG ?=
faults: ## claims and Placements while API server, etcd, network and programs fail, for FAULTS
	CELSET_FAULTS=$(FAULTS) CELSET_FAULTS_SEED=$(FAULTS_SEED) CELSET_FAULTS_LOG=$(abspath $(FAULTS_LOG)) \
		$(GO) test -C test -count=1 -vet=off -timeout 0 -v ./rollout ./hub/scale -run 'TestFaults$$'

site: playground ## documentation and playground as a static site, into dist/site
	rm -rf dist/site
	$(GO) run -C hack/tools/site . $(CURDIR) $(CURDIR)/dist/site
	cp -R dist/playground dist/site/playground

clean: ## remove what was built
	rm -rf bin
