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
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/program"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/topologydriver"
	"github.com/celset/celset/test/topologydriver/cdi"
)

// options holds the values of the flags.
type options struct {
	program.Options
	wiring topologydriver.Wiring
	kind   string
	// machine is the model of a machine whose devices are published, or empty.
	machine string
	// slices is the name of a file with ResourceSlices whose devices are published, or empty.
	slices     string
	node       string
	podUID     string
	kubeletDir string
	cdiDir     string
	// registry is the registry for the metrics of the process.
	registry topologydriver.Registry
	// flags is the flag set. It shows which flags the user has set.
	flags *pflag.FlagSet
}

func newOptions() *options {
	return &options{
		Options: program.NewOptions(5, ":8080"),
		wiring:  topologydriver.Wiring{Devices: 8, Rows: 4, Columns: 4}, kind: string(topology.Ring),
		// The pods of a DaemonSet have the same flags on all nodes, so values of the node must come from environment variables.
		node: os.Getenv("NODE_NAME"), podUID: os.Getenv("POD_UID"),
		kubeletDir: "/var/lib/kubelet", cdiDir: cdi.DefaultDir,
		registry: processRegistry{},
	}
}

func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	o.flags = flags
	flags.StringVar(&o.kind, "topology", o.kind, "Topology of the devices: "+kinds()+".")
	flags.StringVar(&o.machine, "machine", o.machine, "Publish the devices of a real machine, with the names of its drivers, instead of a topology: "+strings.Join(machine.Names(), ", ")+".")
	flags.StringVar(&o.slices, "slices", o.slices, "File with the ResourceSlices of one node. The driver publishes their devices for its own node.")
	flags.IntVar(&o.wiring.Devices, "devices", o.wiring.Devices, "Number of devices of a ring, of bridge pairs, or of couples. For couples, GPUs and NICs count.")
	flags.IntVar(&o.wiring.Rows, "rows", o.wiring.Rows, "Number of rows of a mesh or torus.")
	flags.IntVar(&o.wiring.Columns, "columns", o.wiring.Columns, "Number of columns of a mesh or torus.")
	flags.StringVar(&o.wiring.Driver, "driver-name", o.wiring.Driver, "Name of the DRA driver and domain of the attributes. The default is mesh.example.com for a mesh, gpu.example.com for the GPUs of couples, and mla.example.com otherwise.")
	flags.StringVar(&o.wiring.NICDriver, "nic-driver-name", o.wiring.NICDriver, "Name of the DRA driver of the NICs of couples. The default is nic.example.com.")
	flags.StringVar(&o.wiring.Prefix, "device-prefix", o.wiring.Prefix, "Prefix of the names of devices, before a hyphen and a number. The default is the first label of the driver name.")
	flags.BoolVar(&o.wiring.PeerList, "peer-list", o.wiring.PeerList, "Also publish the peers of devices of a hybrid cube mesh in an attribute with a list type. The API server needs the feature gate DRAListTypeAttributes.")
	flags.StringVar(&o.node, "node-name", o.node, "Name of the node and of the pool of its devices. The default is the environment variable NODE_NAME.")
	flags.StringVar(&o.podUID, "pod-uid", o.podUID, "UID of the driver's pod. It allows two pods of the driver to run on the node during a rolling update. The default is the environment variable POD_UID.")
	flags.StringVar(&o.kubeletDir, "kubelet-root-dir", o.kubeletDir, "Root directory of the kubelet. It has the folders plugins and plugins_registry, with the sockets and checkpoints of drivers.")
	flags.StringVar(&o.cdiDir, "cdi-dir", o.cdiDir, "Directory for CDI specs. The container runtime must read it.")
}

func kinds() string {
	var names []string
	for _, kind := range topologydriver.Kinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// validate returns an error if flags exclude each other. Parameters of a topology are checked when it is created.
func (o *options) validate() error {
	errs := []error{o.Validate()}
	if o.node == "" {
		errs = append(errs, errors.New("--node-name and the environment variable NODE_NAME are empty: set one of them to the name of the Node"))
	}
	for _, given := range []struct{ flag, value string }{
		{"--kubelet-root-dir", o.kubeletDir}, {"--cdi-dir", o.cdiDir},
	} {
		if given.value == "" {
			errs = append(errs, fmt.Errorf("%s is empty; remove the flag to use the default", given.flag))
		}
	}
	return errors.Join(errs...)
}

// wiringFlags conflict with a machine. --topology is allowed together with a machine, because the DaemonSet sets --topology and
// users add flags.
var wiringFlags = []string{"devices", "rows", "columns", "driver-name", "nic-driver-name", "device-prefix", "peer-list"}

// topology returns the topology that the flags describe.
func (o *options) topology() (topology.Topology, error) {
	var given string
	var modelled machine.Machine
	var err error
	switch {
	case o.machine != "" && o.slices != "":
		return topology.Topology{}, errors.New("--machine and --slices can't be used together: remove one of them")
	case o.machine != "":
		given = "--machine"
		modelled, err = machine.ByName(o.machine)
	case o.slices != "":
		given = "--slices"
		modelled, err = machine.FromFile(o.slices)
	default:
		o.wiring.Kind = topology.Kind(o.kind)
		return o.wiring.Topology()
	}
	if err != nil {
		return topology.Topology{}, fmt.Errorf("%s: %w", given, err)
	}
	for _, name := range wiringFlags {
		if o.flags.Changed(name) {
			return topology.Topology{}, fmt.Errorf("%s=%s can't be used with --%s: remove one of them", given, modelled.Name, name)
		}
	}
	return modelled.Topology(o.node), nil
}

// config returns the options of the drivers.
func (o *options) config() (topologydriver.Options, error) {
	if err := o.validate(); err != nil {
		return topologydriver.Options{}, err
	}
	wired, err := o.topology()
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
	config, err := o.ClientConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// processRegistry is a registry whose metrics the program serves at /metrics.
type processRegistry struct{}

func (processRegistry) Register(one metrics.Registerable) error { return legacyregistry.Register(one) }
