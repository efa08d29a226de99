// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Names of the binaries that [Build] can build, in addition to the programs in the folders of cmd.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	Kubectl               = "kubectl"
	Kwok                  = "kwok"

	// KubeScheduler is the unchanged scheduler of Kubernetes, for comparisons.
	KubeScheduler = "kube-scheduler"

	// CelsetScheduler is the default program of StartScheduler.
	CelsetScheduler = "celset-scheduler"

	// TopologyDriver is the example driver.
	TopologyDriver = "celset-topology-driver"

	// DevCluster is the program that runs the local cluster.
	DevCluster = "devcluster"
)

// Names of the binaries of a node that runs containers. They are for Linux; [Build] builds them only if they are requested by
// name.
const (
	Kubelet        = "kubelet"
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	Ctr            = "ctr"
	CNILoopback    = "loopback"
	Runc           = "runc"
	// OCIRuntime is Runc without seccomp filters.
	OCIRuntime = "celset-oci-runtime"
	// NodeInit is the first process of a node.
	NodeInit = "celset-node-init"
	// Workload is the program in the container image that every node has.
	Workload = "celset-workload"
)

const kubernetesModule = "k8s.io/kubernetes"

// testModule is the directory of the module that contains this package, relative to the root of the repository.
const testModule = "test"

// A dependency is a program that is not in a folder of cmd. Most are programs of modules that one of our modules depends on.
type dependency struct {
	pkg        string
	module     string // the directory of the module whose go.mod pins the version of pkg, from the root of the repository
	kubernetes bool   // the build stamps it with the version of k8s.io/kubernetes
	node       bool   // part of a node that runs containers
	onDemand   bool   // built only if requested by name
	static     bool   // built without cgo
	tags       string // build tags, separated by commas
}

// OlderKubernetes lists the older minor versions of Kubernetes whose API server and controller manager [Build] can build, see
// [Options.Kubernetes].
var OlderKubernetes = []string{"1.34", "1.35", "1.36"}

// versioned returns the binary name of a server of an older version of Kubernetes.
func versioned(name, kubernetes string) string {
	if kubernetes == "" {
		return name
	}
	return name + "-" + kubernetes
}

func init() {
	for _, minor := range OlderKubernetes {
		for _, name := range []string{KubeAPIServer, KubeControllerManager} {
			older := dependencies[name]
			older.module, older.onDemand = "hack/tools/kubernetes-"+minor, true
			dependencies[versioned(name, minor)] = older
		}
	}
}

var dependencies = map[string]dependency{
	Etcd:                  {pkg: "go.etcd.io/etcd/server/v3", module: testModule},
	KubeAPIServer:         {pkg: kubernetesModule + "/cmd/kube-apiserver", module: testModule, kubernetes: true},
	KubeControllerManager: {pkg: kubernetesModule + "/cmd/kube-controller-manager", module: testModule, kubernetes: true},
	KubeScheduler:         {pkg: kubernetesModule + "/cmd/kube-scheduler", module: testModule, kubernetes: true},
	Kubectl:               {pkg: kubernetesModule + "/cmd/kubectl", module: testModule, kubernetes: true},
	Kwok:                  {pkg: "sigs.k8s.io/kwok/cmd/kwok", module: "hack/tools/kwok"},
	DevCluster:            {pkg: "./devcluster", module: testModule},
	TopologyDriver:        {pkg: "./topologydriver/celset-topology-driver", module: testModule},

	Kubelet:        {pkg: kubernetesModule + "/cmd/kubelet", module: testModule, kubernetes: true, node: true},
	Containerd:     {pkg: containerdModule + "/cmd/containerd", module: containerdDir, tags: containerdTags, node: true},
	ContainerdShim: {pkg: containerdModule + "/cmd/containerd-shim-runc-v2", module: containerdDir, tags: containerdTags, node: true},
	Ctr:            {pkg: containerdModule + "/cmd/ctr", module: containerdDir, tags: containerdTags, node: true},
	CNILoopback:    {pkg: "github.com/containernetworking/plugins/plugins/main/loopback", module: containerdDir, static: true, node: true},
	Runc:           {pkg: "github.com/opencontainers/runc", module: "hack/tools/runc", node: true},
	OCIRuntime:     {pkg: "./realnode/ociruntime", module: testModule, static: true, node: true},
	NodeInit:       {pkg: "./realnode/nodeinit", module: testModule, static: true, node: true},
	Workload:       {pkg: "./realnode/workload", module: testModule, static: true, node: true},
}

const (
	containerdModule = "github.com/containerd/containerd/v2"
	containerdDir    = "hack/tools/containerd"
	// containerdTags leave out containerd's storage drivers that need C libraries.
	containerdTags = "no_btrfs,no_devmapper,no_zfs"
)

// NodeBinaries returns the names of all binaries of a node that runs containers.
func NodeBinaries() []string {
	return binariesWhere(func(d dependency) bool { return d.node })
}

func binariesWhere(wanted func(dependency) bool) []string {
	var names []string
	for name, d := range dependencies {
		if wanted(d) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// allBinaries returns the names that Build builds by default: all commands of the module at root, and all dependencies except
// for nodes and older versions.
func allBinaries(root string) ([]string, error) {
	names := binariesWhere(func(d dependency) bool { return !d.node && !d.onDemand })
	commands, err := filepath.Glob(filepath.Join(root, "cmd", "*", "main.go"))
	if err != nil {
		return nil, fmt.Errorf("list the commands: %w", err)
	}
	for _, file := range commands {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	slices.Sort(names)
	return names, nil
}
