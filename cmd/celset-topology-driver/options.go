// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/version/verflag"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/internal/topologydriver"
	"github.com/celset/celset/internal/topologydriver/cdi"
)

// options are what the flags say.
type options struct {
	wiring     topologydriver.Wiring
	kind       string
	node       string
	podUID     string
	kubeconfig string
	qps        float32
	burst      int
	kubeletDir string
	cdiDir     string
	health     string
	metrics    string
	logging    *logsapi.LoggingConfiguration
	// registry is that of the process.
	registry topologydriver.Registry
}

func newOptions() *options {
	return &options{
		wiring: topologydriver.Wiring{Devices: 8, Rows: 4, Columns: 4}, kind: string(topology.Ring),
		// A DaemonSet has no other way to say what differs from node to node.
		node: os.Getenv("NODE_NAME"), podUID: os.Getenv("POD_UID"),
		qps: 5, burst: 10, kubeletDir: "/var/lib/kubelet", cdiDir: cdi.DefaultDir,
		health: ":8081", metrics: ":8080",
		logging: logsapi.NewLoggingConfiguration(), registry: processRegistry{},
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kind, "topology", o.kind, "How the devices are wired: "+kinds()+".")
	flags.IntVar(&o.wiring.Devices, "devices", o.wiring.Devices, "Number of devices of a ring, of bridge pairs, or of couples, where GPUs and NICs count.")
	flags.IntVar(&o.wiring.Rows, "rows", o.wiring.Rows, "Rows of a mesh or torus.")
	flags.IntVar(&o.wiring.Columns, "columns", o.wiring.Columns, "Columns of a mesh or torus.")
	flags.StringVar(&o.wiring.Driver, "driver-name", o.wiring.Driver, "Name of the DRA driver, which is also the domain of the attributes. The default is mla.example.com, for a mesh mesh.example.com, for the GPUs of couples gpu.example.com.")
	flags.StringVar(&o.wiring.NICDriver, "nic-driver-name", o.wiring.NICDriver, "Name of the DRA driver of the NICs of couples. The default is nic.example.com.")
	flags.StringVar(&o.wiring.Prefix, "device-prefix", o.wiring.Prefix, "How names of devices begin, before a hyphen and a number. The default is the first label of the driver name.")
	flags.BoolVar(&o.wiring.PeerList, "peer-list", o.wiring.PeerList, "Have devices of a hybrid cube mesh list their peers in an attribute of a list type, too. Needs the feature gate DRAListTypeAttributes in the API server.")
	flags.StringVar(&o.node, "node-name", o.node, "Name of the node, and of the pool of its devices. The default is the environment variable NODE_NAME.")
	flags.StringVar(&o.podUID, "pod-uid", o.podUID, "UID of the driver's pod. With it, two pods may run on the node for as long as a rolling update takes. The default is the environment variable POD_UID.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig, "Path of a kubeconfig. Without it, the service account of the pod is used.")
	flags.Float32Var(&o.qps, "kube-api-qps", o.qps, "Requests a second to the API server.")
	flags.IntVar(&o.burst, "kube-api-burst", o.burst, "Requests to the API server in a burst.")
	flags.StringVar(&o.kubeletDir, "kubelet-root-dir", o.kubeletDir, "Root directory of the kubelet. Sockets and checkpoints of drivers are in its folders plugins and plugins_registry.")
	flags.StringVar(&o.cdiDir, "cdi-dir", o.cdiDir, "Directory for CDI specs, one that the container runtime reads.")
	flags.StringVar(&o.health, "health-probe-bind-address", o.health, "Address of /healthz and /readyz; 0 for none.")
	flags.StringVar(&o.metrics, "metrics-bind-address", o.metrics, "Address of /metrics; 0 for none.")
	logsapi.AddFlags(o.logging, flags)
	verflag.AddFlags(flags)
}

func kinds() string {
	var names []string
	for _, kind := range topologydriver.Kinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// validate says which flags can't be. Topologies say themselves what they can't be.
func (o *options) validate() error {
	var errs []error
	if o.node == "" {
		errs = append(errs, errors.New("--node-name is empty, and there is no NODE_NAME: give the name of the Node object"))
	}
	for _, given := range []struct{ flag, value string }{
		{"--kubelet-root-dir", o.kubeletDir}, {"--cdi-dir", o.cdiDir},
		{"--health-probe-bind-address", o.health}, {"--metrics-bind-address", o.metrics},
	} {
		if given.value == "" {
			errs = append(errs, fmt.Errorf("%s is empty; leave the flag out for its default", given.flag))
		}
	}
	return errors.Join(errs...)
}

// config is what the drivers are started with.
func (o *options) config() (topologydriver.Options, error) {
	if err := o.validate(); err != nil {
		return topologydriver.Options{}, err
	}
	o.wiring.Kind = topology.Kind(o.kind)
	wired, err := o.wiring.Topology()
	if err != nil {
		return topologydriver.Options{}, err
	}
	client, err := o.client()
	if err != nil {
		return topologydriver.Options{}, err
	}
	measured, err := topologydriver.NewMetrics(o.registry, wired.Drivers()...)
	if err != nil {
		return topologydriver.Options{}, err
	}
	return topologydriver.Options{
		Topology: wired, NodeName: o.node, PodUID: types.UID(o.podUID), Client: client,
		KubeletDir: o.kubeletDir, CDIDir: o.cdiDir, Metrics: measured,
	}, nil
}

func (o *options) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("configuration of the client: %w; give --kubeconfig, or run in a pod", err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	return kubernetes.NewForConfig(config)
}

// processRegistry is what /metrics shows.
type processRegistry struct{}

func (processRegistry) Register(one metrics.Registerable) error { return legacyregistry.Register(one) }
