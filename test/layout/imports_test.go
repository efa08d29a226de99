// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/celset/celset"

// rule says what the packages under a folder may import. Patterns are import
// paths that also stand for everything below them.
type rule struct {
	folder string
	// alone is for the package in the folder, without those below it.
	alone bool
	// ours are the packages of this module that may be imported, besides those under
	// the same folder. nil: any.
	ours []string
	// direct are the modules and packages from outside the standard library that may
	// be imported. nil: any.
	direct []string
	// never must not come in behind an import either.
	never []string
}

var server = []string{"k8s.io/kubernetes", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

var rules = []rule{
	{
		// Wire types, which anybody can import: they compile no expression and ask no API server.
		folder: "apis",
		ours:   []string{},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/json", "sigs.k8s.io/yaml", "go.yaml.in/yaml/v2", "k8s.io/utils"},
		never:  append([]string{"github.com/google/cel-go"}, server...),
	},
	{
		// Anybody who has expressions can evaluate them, without an API server.
		folder: "cel",
		ours:   []string{"apis"},
		direct: []string{
			"github.com/google/cel-go", "github.com/blang/semver/v4",
			"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils",
			"k8s.io/apiserver/pkg/cel", "k8s.io/apiserver/pkg/apis/cel",
			"k8s.io/dynamic-resource-allocation/cel",
			"open-cluster-management.io/api", "sigs.k8s.io/structured-merge-diff/v6/value", "golang.org/x/sync/semaphore",
		},
		never: []string{"k8s.io/kubernetes", "sigs.k8s.io/controller-runtime"},
	},
	{
		// It knows syntax, and nothing of what is selected.
		folder: "cel/tree",
		ours:   []string{},
		direct: []string{"github.com/google/cel-go"},
	},
	{
		// Taking turns takes tenants, and nothing that is waited for.
		folder: "cel/fairness",
		ours:   []string{},
		direct: []string{},
	},
	{
		folder: "cel/device",
		ours:   []string{"apis", "cel"},
		never:  append([]string{"open-cluster-management.io/api"}, server...),
	},
	{
		// Counting bits takes nothing but bits.
		folder: "cel/device/bitset",
		ours:   []string{},
		direct: []string{},
	},
	{
		// Any program that knows clusters can select them: whose types it has, and that
		// it has an API server or a controller, is its own business.
		folder: "cel/cluster",
		ours:   []string{"cel"},
		never: append([]string{
			module + "/cel/device", "k8s.io/apiserver/pkg/server", "k8s.io/apiserver/pkg/endpoints",
			"sigs.k8s.io/cluster-inventory-api",
		}, server...),
	},
	{
		// It reads no clock, and knows nothing of clusters.
		folder: "cel/cluster/clock",
		ours:   []string{"cel/meter", "cel/tree"},
		direct: []string{"github.com/google/cel-go"},
	},
	{
		// Autoscalers and other schedulers must be able to adopt it.
		folder: "allocator",
		ours:   []string{"apis", "cel"},
		direct: []string{
			"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils", "k8s.io/klog/v2",
			"k8s.io/dynamic-resource-allocation",
		},
		never: server,
	},
	{
		// Whoever can ask the allocator can ask it why.
		folder: "allocator/explain",
		ours:   []string{"allocator", "apis", "cel"},
	},
	{
		// What could be had is a question to the allocator, too.
		folder: "allocator/fragmentation",
		ours:   []string{"allocator", "apis", "cel"},
	},
	{
		// Who has to go is found out without whoever evicts.
		folder: "allocator/preemption",
		ours:   []string{"allocator", "apis", "cel"},
	},
	{
		// It lives in kube-scheduler, which runs no controller of ours.
		folder: "plugin",
		ours:   []string{"allocator", "apis", "cel"},
		direct: []string{
			"k8s.io/kubernetes", "k8s.io/kube-scheduler", "k8s.io/client-go", "k8s.io/component-base",
			"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils", "k8s.io/klog/v2",
			"k8s.io/dynamic-resource-allocation", "k8s.io/component-helpers/resource", "k8s.io/component-helpers/scheduling/corev1",
		},
		never: []string{"sigs.k8s.io/controller-runtime"},
	},
	{
		// Whose turn it is depends on pods and times, and on no scheduler.
		folder: "plugin/guard",
		ours:   []string{},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils"},
		never:  server,
	},
	{
		// What is watched is told; what is written down goes to the API server.
		folder: "plugin/watchdog",
		ours:   []string{},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "k8s.io/utils"},
		never:  []string{"k8s.io/kubernetes", "sigs.k8s.io/controller-runtime"},
	},
	{
		folder: "cmd/celset-scheduler",
		ours:   []string{"cmd/internal/skew", "internal/serving", "plugin"},
		never:  []string{"sigs.k8s.io/controller-runtime", module + "/placement", module + "/admission", module + "/internal/testing", module + "/internal/controlplane"},
	},
	{
		folder: "cmd/internal/skew",
		ours:   []string{},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2"},
		never:  []string{"k8s.io/kubernetes", "sigs.k8s.io/controller-runtime"},
	},
	{
		// Measuring takes claims and counts, and no scheduler.
		folder: "plugin/metrics",
		ours:   []string{"allocator", "apis", "cel"},
		direct: []string{"k8s.io/api", "k8s.io/component-base", "k8s.io/dynamic-resource-allocation"},
		never:  server,
	},
	{
		// Clusters are selected without allocating devices, and not in kube-scheduler.
		folder: "placement",
		ours:   []string{"apis", "cel", "internal/serving"},
		direct: []string{
			"sigs.k8s.io/controller-runtime", "open-cluster-management.io/api", "sigs.k8s.io/cluster-inventory-api/apis", "k8s.io/client-go",
			"k8s.io/component-base", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils", "k8s.io/klog/v2",
			"k8s.io/apiserver/pkg/authentication", "k8s.io/apiserver/pkg/authorization", "k8s.io/apiserver/pkg/apis/apiserver",
			"sigs.k8s.io/yaml", "golang.org/x/sync/semaphore",
		},
		never: []string{"k8s.io/kubernetes", module + "/cel/device"},
	},
	{
		// Deciding takes a snapshot and a time: it has no client and no controller.
		folder: "placement",
		alone:  true,
		ours:   []string{"cel"},
		direct: []string{"open-cluster-management.io/api", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils"},
		never:  server,
	},
	{
		// Parsing and matching need no controller.
		folder: "placement/federation",
		ours:   []string{"cel/cluster"},
		direct: []string{"k8s.io/apimachinery"},
		never:  server,
	},
	{
		// Whatever stands for a cluster is one for those who decide: it is turned into that, and not
		// decided here.
		folder: "placement/inventory",
		ours:   []string{},
		direct: []string{
			"sigs.k8s.io/cluster-inventory-api/apis", "open-cluster-management.io/api",
			"sigs.k8s.io/controller-runtime/pkg/client", "sigs.k8s.io/controller-runtime/pkg/cache",
			"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils",
		},
		never: []string{"k8s.io/kubernetes", "github.com/google/cel-go", module},
	},
	{
		// Writing decisions takes a manager, and no scheduler of pods.
		folder: "placement/controller",
		ours:   []string{"placement", "cel/cluster", "cel/fairness"},
		never:  []string{"k8s.io/kubernetes", module + "/allocator", module + "/plugin", module + "/internal"},
	},
	{
		// Measuring is a matter of observers: deciding does not know of it.
		folder: "placement/metrics",
		ours:   []string{"placement", "cel"},
		direct: []string{"k8s.io/component-base/metrics", "k8s.io/apimachinery"},
		never:  []string{"k8s.io/kubernetes", "sigs.k8s.io/controller-runtime", module + "/placement/controller", module + "/cel/device"},
	},
	{
		// Who asks and who answers are interfaces.
		folder: "placement/debug",
		alone:  true,
		ours:   []string{"placement", "cel/fairness"},
		never:  append([]string{module + "/placement/controller", "k8s.io/apiserver/pkg/server"}, server...),
	},
	{
		// Serving takes a manager; what decides is handed in.
		folder: "placement/debug/server",
		ours:   []string{"placement/debug", "placement", "internal/serving"},
		never:  []string{"k8s.io/kubernetes", module + "/placement/controller", module + "/cel/device"},
	},
	{
		// Binding sets takes rights, and no selection.
		folder: "placement/binding",
		ours:   []string{},
		never:  []string{"k8s.io/kubernetes", "github.com/google/cel-go", module},
	},
	{
		// Checking takes no client: what is refused depends on the Placement alone.
		folder: "placement/admission",
		ours:   []string{"placement", "cel"},
		never:  []string{"k8s.io/kubernetes", module + "/allocator", module + "/plugin", module + "/internal", module + "/placement/controller"},
	},
	{
		folder: "cmd/celset-placement",
		ours:   []string{"cmd/internal/program", "placement"},
		never:  []string{"k8s.io/kubernetes", module + "/allocator", module + "/plugin", module + "/internal/testing", module + "/internal/controlplane"},
	},
	{
		// What is refused is what the scheduler would refuse, found by the same code, and
		// without a scheduler.
		folder: "admission",
		alone:  true,
		ours:   []string{"apis", "cel", "cel/device"},
		direct: []string{
			"sigs.k8s.io/controller-runtime", "k8s.io/api", "k8s.io/apimachinery",
		},
		never: []string{"k8s.io/kubernetes", module + "/allocator", module + "/plugin", module + "/placement", module + "/internal"},
	},
	{
		// What is in use is counted as the allocator counts it, from what is handed in.
		folder: "admission/guard",
		alone:  true,
		ours:   []string{"allocator"},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/dynamic-resource-allocation/structured", "k8s.io/utils"},
		never:  server,
	},
	{
		// Electing and watching take a client, and no scheduler.
		folder: "admission/guard/server",
		ours:   []string{"admission/guard"},
		direct: []string{
			"sigs.k8s.io/controller-runtime", "k8s.io/client-go", "k8s.io/component-base/metrics", "k8s.io/api", "k8s.io/apimachinery",
			"k8s.io/klog/v2", "k8s.io/utils",
		},
		never: []string{"k8s.io/kubernetes", module + "/plugin", module + "/placement", module + "/internal"},
	},
	{
		folder: "cmd/celset-webhook",
		ours:   []string{"admission", "cmd/internal/program", "internal/serving", "placement/admission"},
		never:  []string{"k8s.io/kubernetes", module + "/plugin", module + "/placement/controller", module + "/internal/testing", module + "/internal/controlplane"},
	},
	{
		// It knows how a program is started, and not what for.
		folder: "cmd/internal/program",
		ours:   []string{"cmd/internal/version", "internal/serving"},
		direct: []string{
			"github.com/prometheus/client_golang", "github.com/spf13/cobra", "github.com/spf13/pflag", "k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd",
			"k8s.io/component-base", "k8s.io/klog/v2", "sigs.k8s.io/controller-runtime",
		},
		never: []string{"k8s.io/kubernetes"},
	},
	{
		// Topologies are data, generated for everybody.
		folder: "internal/topology",
		ours:   []string{},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils"},
		never:  server,
	},
	{
		// Models of machines are topologies.
		folder: "internal/topology/machine",
		ours:   []string{"internal/topology"},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery"},
		never:  server,
	},
	{
		// What is told is data; who tells it has the API.
		folder: "internal/story",
		ours:   []string{"internal/topology"},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery"},
		never:  server,
	},
	{
		folder: "internal/testing/shape",
		ours:   []string{"apis", "internal/topology"},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery"},
		never:  append([]string{"testing", "github.com/google/cel-go"}, server...),
	},
	{
		folder: "internal/messages",
		ours:   []string{},
		direct: []string{"sigs.k8s.io/yaml"},
	},
	{
		// Texts only: what they are tried on is somebody else's business.
		folder: "internal/testing/redteam",
		alone:  true,
		ours:   []string{},
		direct: []string{},
	},
	{
		folder: "internal/testing/redteam/expensive",
		ours:   []string{"cel"},
		direct: []string{"github.com/google/cel-go", "k8s.io/api", "open-cluster-management.io/api", "golang.org/x/sys/unix"},
		never:  server,
	},
	{
		folder: "internal/fleet",
		ours:   []string{},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils", "open-cluster-management.io/api"},
		never:  server,
	},
	{
		folder: "internal/testing/malformed",
		ours:   []string{"cel/cluster", "placement"},
		direct: []string{"k8s.io/apimachinery", "open-cluster-management.io/api"},
		never:  server,
	},
	{
		folder: "internal/hub",
		ours:   []string{"internal/controlplane", "manifests/placement/crds"},
	},
	{
		// What it says of the selection of clusters it checks without CEL.
		folder: "internal/demo/placement",
		ours:   []string{"internal/controlplane", "internal/fleet", "internal/hub", "placement"},
		direct: []string{
			"open-cluster-management.io/api", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2",
			"sigs.k8s.io/controller-runtime", "github.com/go-logr/logr", "github.com/google/go-cmp", "golang.org/x/sync",
		},
		never: []string{"k8s.io/kubernetes", module + "/allocator", module + "/plugin"},
	},
	{
		// A plugin for kubectl is small, and what it says comes from the search, not from
		// the scheduler.
		folder: "cmd/kubectl-celset",
		ours:   []string{"allocator", "apis", "cel", "cmd/internal/skew", "cmd/internal/version", "internal/clusterstate", "internal/topology"},
		never:  []string{"k8s.io/kubernetes", "sigs.k8s.io/controller-runtime", module + "/plugin", module + "/placement"},
	},
	{
		// Servers bound their clients, whatever they serve, the scheduler's among them.
		folder: "internal/serving",
		alone:  true,
		ours:   []string{},
		direct: []string{"k8s.io/client-go/util/cert"},
		never:  []string{"k8s.io/kubernetes", "sigs.k8s.io/controller-runtime"},
	},
	{
		folder: "internal/serving/managed",
		ours:   []string{"internal/serving"},
		direct: []string{"golang.org/x/sync", "k8s.io/utils", "sigs.k8s.io/controller-runtime"},
		never:  []string{"k8s.io/kubernetes"},
	},
	{
		folder: "internal/clusterstate",
		ours:   []string{"allocator", "apis", "cel"},
		never:  []string{"k8s.io/kubernetes", "sigs.k8s.io/controller-runtime"},
	},
	{
		folder: "internal/controlplane",
		ours:   []string{},
	},
	{
		// The kubelet and containerd are programs, not libraries.
		folder: "internal/realnode",
		ours:   []string{"internal/controlplane"},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "golang.org/x/sys/unix", "sigs.k8s.io/yaml"},
		never:  []string{"k8s.io/kubernetes", "github.com/containerd", "github.com/opencontainers"},
	},
	{
		// Their programs do one thing.
		folder: "internal/realnode/nodeinit",
		ours:   []string{},
		direct: []string{"golang.org/x/sys/unix"},
	},
	{
		folder: "internal/realnode/ociruntime",
		ours:   []string{},
		direct: []string{},
	},
	{
		folder: "internal/realnode/workload",
		ours:   []string{},
		direct: []string{},
	},
	{
		// A driver knows what was allocated, and not why.
		folder: "internal/topologydriver",
		ours:   []string{"internal/topology"},
		direct: []string{
			"k8s.io/dynamic-resource-allocation/kubeletplugin", "k8s.io/dynamic-resource-allocation/resourceslice",
			"k8s.io/kubelet/pkg/apis", "k8s.io/client-go", "k8s.io/component-base/metrics",
			"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils", "k8s.io/klog/v2", "google.golang.org/grpc",
			// Of the kubelet, what keeps files.
			"k8s.io/kubernetes/pkg/kubelet/util/store", "k8s.io/kubernetes/pkg/util/filesystem",
			"tags.cncf.io/container-device-interface/specs-go",
		},
		never: []string{"sigs.k8s.io/controller-runtime", "github.com/google/cel-go", "k8s.io/kubernetes/pkg/scheduler"},
	},
	{
		// It writes and reads files, of which it is told nothing but paths.
		folder: "internal/topologydriver/checkpoint",
		ours:   []string{},
		never:  []string{"k8s.io/client-go", "google.golang.org/grpc"},
	},
	{
		folder: "internal/topologydriver/cdi",
		ours:   []string{},
		never:  []string{"k8s.io/client-go", "google.golang.org/grpc"},
	},
	{
		folder: "cmd/celset-topology-driver",
		ours:   []string{"cmd/internal/program", "internal/serving", "internal/topology", "internal/topologydriver"},
		never:  []string{module + "/allocator", module + "/plugin", module + "/cel", module + "/placement", module + "/admission"},
	},
	{
		// Tests alone, and what they know of schedulers is what processes tell.
		folder: "test/rollout",
		ours:   []string{},
		direct: []string{},
	},
	{
		// Tests alone; what they know, programs and containers tell.
		folder: "test/e2e",
		ours:   []string{},
		direct: []string{},
	},
	{
		// It judges what is in the API, or behind it in etcd, whoever put it there.
		folder: "internal/testing/ledger",
		ours:   []string{},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "go.etcd.io/etcd/client/v3", "go.uber.org/zap"},
	},
	{
		// It judges what programs were told, whichever these are.
		folder: "internal/testing/history",
		ours:   []string{"internal/testing/ledger"},
		direct: []string{"github.com/anishathalye/porcupine", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiserver/pkg/endpoints/request", "k8s.io/client-go/kubernetes/scheme"},
	},
	{
		// It starts the guard as manifests do, and knows nothing of how it judges.
		folder: "internal/testing/guarded",
		ours:   []string{"internal/controlplane", "internal/testing/render"},
		direct: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/yaml"},
	},
	{
		// It breaks requests, whatever they are about.
		folder: "internal/testing/faults",
		ours:   []string{},
		direct: []string{"k8s.io/apimachinery", "k8s.io/apiserver/pkg/endpoints/request"},
	},
	{
		folder: "internal/testing/render",
		ours:   []string{},
		direct: []string{"k8s.io/apimachinery", "sigs.k8s.io/kustomize"},
		never:  server,
	},
	{
		// Manifests are data.
		folder: "manifests",
		ours:   []string{},
		direct: []string{},
	},
}

// goPackage is what "go list -json" says of a package.
type goPackage struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string
	Deps       []string
}

// list asks once for all tests.
var list = sync.OnceValues(func() (map[string]goPackage, error) {
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Standard,Imports,Deps", module+"/...")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, &stderr)
	}
	packages := map[string]goPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
})

func TestImports(t *testing.T) {
	packages, err := list()
	require.NoError(t, err)
	for _, r := range rules {
		t.Run(r.folder, func(t *testing.T) {
			checked := 0
			for path, p := range packages {
				if under(path, module+"/"+r.folder) && (!r.alone || path == module+"/"+r.folder) {
					r.check(t, p, packages)
					checked++
				}
			}
			require.NotZero(t, checked, "the folder has no packages: has it moved?")
		})
	}
}

func (r rule) check(t *testing.T, p goPackage, packages map[string]goPackage) {
	for _, imported := range p.Imports {
		switch {
		case packages[imported].Standard || imported == "C":
		case under(imported, module):
			if r.ours != nil && !under(imported, module+"/"+r.folder) && !underAny(strings.TrimPrefix(imported, module+"/"), r.ours) {
				t.Errorf("%s must not import %s", p.ImportPath, imported)
			}
		case r.direct != nil && !underAny(imported, r.direct):
			t.Errorf("%s must not import %s", p.ImportPath, imported)
		}
	}
	for _, dependency := range p.Deps {
		if underAny(dependency, r.never) {
			t.Errorf("%s must not depend on %s", p.ImportPath, dependency)
		}
	}
}

func underAny(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return under(path, pattern) })
}

func under(path, pattern string) bool {
	return path == pattern || strings.HasPrefix(path, pattern+"/")
}
