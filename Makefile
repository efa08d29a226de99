# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0

GO ?= go

# Race detector for what is ours and concurrent. Of what pulls in Kubernetes servers it is the
# plugin only, which shares informers' objects with a whole scheduler: building that with the
# detector takes some minutes the first time, and the tests some seconds. The commands would
# take many times as long. Short, because test-all has all random cases.
RACE_PACKAGES = ./apis/... ./cel/... ./allocator/... ./internal/topology/... ./internal/topologydriver/... ./placement/... ./plugin/... ./admission/...

.PHONY: help demo demo-placement demo-real test test-race test-coverage coverage test-all test-guarantee e2e skew bin up build lint lint-fix tidy fuzz bench expensive perf perf-report soak clean generate images generate-docs

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# Compiling takes minutes the first time, and "go run" says nothing meanwhile.
compiled = @hack/announce.sh "compiling cmd/devcluster, some minutes the first time" $(GO) build -o /dev/null ./cmd/devcluster

demo: ## a local cluster, and what celset is for on it
	$(compiled)
	$(GO) run ./cmd/devcluster demo

demo-placement: ## a local hub, and how celset selects clusters on it
	$(compiled)
	$(GO) run ./cmd/devcluster demo placement

demo-real: ## a local node that runs containers, and one that names its four connected devices (Linux, as root)
	$(compiled)
	$(GO) run ./cmd/devcluster demo real

test: bin test-race test-coverage test-all test-guarantee ## unit, integration and conformance tests

test-race:
	$(GO) test -race -short -timeout 30m $(RACE_PACKAGES)

# What tests reach of the packages that are ours and no program, compared with what is recorded in
# test/coverage. A run of its own: beside the race detector counting makes searches take several times as long,
# and in test-all it would slow down all random cases.
COVERAGE ?= bin/coverage.out
COVERAGE_FLAGS ?=
test-coverage:
	@mkdir -p $(dir $(COVERAGE))
	$(GO) test -short -count=1 -timeout 30m -coverprofile=$(COVERAGE) $(RACE_PACKAGES)
	$(GO) test ./test/coverage -run TestNoPackageIsTestedLess -count=1 -profile=$(abspath $(COVERAGE)) $(COVERAGE_FLAGS)

coverage: ## record how much of each package its tests reach; a fall fails the tests
	$(MAKE) test-coverage COVERAGE_FLAGS=-update

test-all:
	$(GO) test -count=1 -timeout 30m ./...

# By itself, because it measures what tenants can do to each other's delays; -v for the table.
test-guarantee: ## that no tenant can stop the programs, on a local control plane, measured
	CELSET_REDTEAM=all $(GO) test -count=1 -timeout 30m -v ./test/redteam

# Tests on API servers and controller managers of older versions: with the defaults of each, and
# those of features of DRA once more with the features on that it has. -v for what is skipped.
SKEW ?= 1.34 1.35 1.36
SKEW_FEATURES = Constraint|Bind|Devices|Extended|Taint|Share|Alternative
skew: ## the user stories on older versions of Kubernetes, SKEW
	@set -e; for minor in $(SKEW); do \
		echo "--- Kubernetes $$minor"; export CELSET_KUBERNETES=$$minor; \
		$(GO) test -v -count=1 -timeout 30m ./test/integration ./test/integration/placement ./test/integration/twoschedulers; \
		CELSET_KUBERNETES_FEATURES=on $(GO) test -v -count=1 -timeout 30m ./test/integration -run '$(SKEW_FEATURES)'; \
	done

# -v for the tests that run, and for the reason if none does.
e2e: ## the user stories up to their containers, on a local node (Linux, as root)
	CELSET_E2E=1 $(GO) test -v -count=1 -timeout 20m ./test/e2e

bin: ## build the binaries of the local cluster and the commands of this module into bin/
	$(compiled)
	$(GO) run ./cmd/devcluster build

up: ## run a local cluster with celset-scheduler until interrupted
	$(compiled)
	$(GO) run ./cmd/devcluster up

build: ## compile everything
	$(GO) build ./...

bin/controller-gen: hack/tools/controller-gen/go.mod
	$(GO) build -C hack/tools/controller-gen -o $(CURDIR)/$@ sigs.k8s.io/controller-tools/cmd/controller-gen
	@touch $@

# ClusterClaims are objects of managed clusters; a hub has none.
OCM_TYPES = open-cluster-management.io/api/cluster
PLACEMENT_CRDS ?= manifests/placement/crds
generate: bin/controller-gen ## write what is generated: the CRDs of Placements, from the types that go.mod names
	rm -f $(PLACEMENT_CRDS)/cluster.*.yaml
	bin/controller-gen crd:headerFile=hack/crd-header.txt $(foreach version,v1 v1alpha1 v1beta1 v1beta2,paths=$(OCM_TYPES)/$(version)) output:crd:dir=$(PLACEMENT_CRDS)
	rm $(PLACEMENT_CRDS)/cluster.open-cluster-management.io_clusterclaims.yaml

generate-docs: ## write what is generated into the pages in docs
	$(GO) test ./test/docs ./internal/messages -run 'TestHardware|TestVersions|TestLimits|TestPageIsUpToDate' -update

bin/golangci-lint: hack/tools/golangci-lint/go.mod
	$(GO) build -C hack/tools/golangci-lint -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

bin/actionlint: hack/tools/actionlint/go.mod
	$(GO) build -C hack/tools/actionlint -o $(CURDIR)/$@ github.com/rhysd/actionlint/cmd/actionlint
	@touch $@

bin/helm: hack/tools/helm/go.mod
	$(GO) build -C hack/tools/helm -o $(CURDIR)/$@ helm.sh/helm/v4/cmd/helm
	@touch $@

# Without the ways to find targets, which pull in the libraries of every cloud and are no part of a
# rule.
bin/promtool: hack/tools/promtool/go.mod
	$(GO) build -C hack/tools/promtool -tags remove_all_sd -o $(CURDIR)/$@ github.com/prometheus/prometheus/cmd/promtool
	@touch $@

bin/ko: hack/tools/ko/go.mod
	$(GO) build -C hack/tools/ko -o $(CURDIR)/$@ github.com/google/ko
	@touch $@

# Programs that run in clusters. KO_DOCKER_REPO is the registry; ko.local and
# kind.local are for a local Docker.
IMAGES ?= ./cmd/celset-scheduler ./cmd/celset-placement ./cmd/celset-webhook ./cmd/celset-topology-driver
IMAGE_TAG ?= dev
images: bin/ko ## build and push container images to KO_DOCKER_REPO
	@test -n "$(KO_DOCKER_REPO)" || { echo "set KO_DOCKER_REPO to a registry, such as registry.example.com/celset"; exit 1; }
	bin/ko build --base-import-paths --tags=$(IMAGE_TAG) $(IMAGES)

# Without shellcheck and pyflakes, which are no Go: the scripts in workflows are one line each.
lint: bin/golangci-lint bin/actionlint ## static checks, of workflows too
	bin/actionlint -shellcheck= -pyflakes=
	bin/golangci-lint run ./...
	$(GO) mod tidy -diff

lint-fix: bin/golangci-lint ## format, and fix what can be fixed
	bin/golangci-lint run --fix ./...

tidy: ## tidy go.mod
	$(GO) mod tidy

FUZZTIME ?= 60s
fuzz: ## run each fuzz target for FUZZTIME
	$(GO) test ./allocator -run '^$$' -fuzz FuzzSameAsExhaustive -fuzztime $(FUZZTIME) -fuzzminimizetime 10x
	$(GO) test ./apis/celset/v1alpha1 -run '^$$' -fuzz FuzzDecode -fuzztime $(FUZZTIME)
	$(GO) test ./apis/config/v1alpha1 -run '^$$' -fuzz FuzzDecodeArgs -fuzztime $(FUZZTIME)
	$(GO) test ./cel/device/bound -run '^$$' -fuzz FuzzBoundsAreSound -fuzztime $(FUZZTIME) -fuzzminimizetime 10x
	$(GO) test ./internal/testing/redteam/expensive -run '^$$' -fuzz FuzzExpensive -fuzztime $(FUZZTIME) -fuzzminimizetime 10x
	$(GO) test ./test/conformance -run '^$$' -fuzz FuzzSameAsUpstream -fuzztime $(FUZZTIME) -fuzzminimizetime 10x

EXPENSIVE ?= 1h
expensive: ## search for expressions that take more than they cost, for EXPENSIVE
	CELSET_EXPENSIVE=$(EXPENSIVE) $(GO) test ./internal/testing/redteam/expensive -run TestCostIsAboutProportionalToTime -count=1 -timeout 0 -v

BENCHTIME ?= 200ms
bench: ## benchmarks, in benchstat's format, each for BENCHTIME
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 2h ./cel/... ./test/perf/...

# The names of benchmarks and workloads, as for "go test -bench".
PERF ?= PerfScheduling
PERF_RESULTS ?=
perf: ## whole schedulers in scheduler_perf, an hour; raw results go to PERF_RESULTS
	@test -n "$(PERF_RESULTS)" || { echo "set PERF_RESULTS to a directory, such as /tmp/results"; exit 1; }
	mkdir -p $(PERF_RESULTS)
	ARTIFACTS=$(abspath $(PERF_RESULTS)) CELSET_PERF_RESULTS=$(abspath $(PERF_RESULTS)) \
		$(GO) test ./test/perf/scheduler_perf -run '^$$' -bench '$(PERF)' -timeout 4h > $(PERF_RESULTS)/output.txt

perf-report: ## docs/performance.md, from the raw results in PERF_RESULTS if it is set; several with commas
	$(GO) test ./test/perf/report -run TestPageIsUpToDate -update $(if $(PERF_RESULTS),-raw=$(PERF_RESULTS))

SOAK ?= 30m
SOAK_LOG ?= docs/performance/soak.log
soak: ## pods come and go on 1,000 nodes for SOAK; the log is part of docs/performance.md
	mkdir -p $(dir $(SOAK_LOG))
	CELSET_SOAK=$(SOAK) CELSET_SOAK_LOG=$(abspath $(SOAK_LOG)) $(GO) test ./test/soak -run TestSoak -count=1 -timeout 0 -v

clean: ## remove what was built
	rm -rf bin
