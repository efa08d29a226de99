// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gangfleet models fleets of hosts for groups of pods that run together (gangs): the labels of nodes, and the devices
// that drivers publish. The numbers of hosts and their wiring follow vendors' descriptions. Names and identifiers are invented.
// No data comes from a real fleet.
//
//	hosts := gangfleet.Racks(20)
//	l := cluster.NewLabeledLab(t, "racks", len(hosts), hosts.Labels)
//	l.Publish(t, hosts[i].Devices, l.Nodes[i])
//
// manifests/examples/gangs has the DeviceClasses for these fleets, with node set constraints.
package gangfleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/topology"
)

// Host is a node of a fleet.
type Host struct {
	Labels  map[string]string
	Devices topology.Topology
	// At is the position of the host. Depending on the fleet, it is x, y and z, or rack and tray, or leaf and port.
	At []int
}

// Fleet is a list of hosts, ordered by number.
type Fleet []Host

// Labels returns the labels of host i, in the form that controlplane.NodeOptions needs.
func (f Fleet) Labels(i int) map[string]string { return f[i].Labels }

// Only returns the hosts for whose position keep returns true.
func (f Fleet) Only(keep func(at []int) bool) Fleet {
	return slices.DeleteFunc(slices.Clone(f), func(h Host) bool { return !keep(h.At) })
}

// Objects returns a node for each host, and published[i], the ResourceSlices of nodes[i].
func (f Fleet) Objects() (nodes []*v1.Node, published [][]*resourceapi.ResourceSlice) {
	for i, h := range f {
		node := &v1.Node{}
		node.Name, node.Labels = fmt.Sprintf("node-%05d", i), h.Labels
		nodes = append(nodes, node)
		published = append(published, must(h.Devices.ResourceSlices(node.Name)))
	}
	return nodes, published
}

// Torus returns x*y*z hosts in a three-dimensional torus, each with four TPU chips. Each chip publishes the position of its
// host (hostX, hostY and hostZ), and its own row and column on the host.
func Torus(x, y, z int) Fleet {
	var f Fleet
	for i := range x * y * z {
		at := []int{i / (y * z), i / z % y, i % z}
		chips := must(topology.NewMesh(topology.Family{Driver: "tpu.example.com", Prefix: "tpu"}, 2, 2))
		for _, d := range chips.Devices {
			for axis, name := range []resourceapi.QualifiedName{"hostX", "hostY", "hostZ"} {
				d.Attributes[name] = number(at[axis])
			}
		}
		f = append(f, Host{map[string]string{"example.com/torus": "a"}, chips, at})
	}
	return f
}

// Trays is the number of trays of a rack.
const Trays = 18

// Racks returns the hosts of GB200 NVL72 racks. A host is a tray with four GPUs and eight ports, as in package machine. The
// trays of a rack are one NVLink domain, identified by the label nvidia.com/gpu.clique. The numbered racks form a circle.
func Racks(racks int) Fleet {
	tray := must(machine.ByName("oci-gb200"))
	var f Fleet
	for i := range racks * Trays {
		rack := i / Trays
		f = append(f, Host{map[string]string{
			"nvidia.com/gpu.clique": fmt.Sprintf("6b1f2c40-0d52-4b5e-8f5c-%012d.0", rack),
			"example.com/rack":      strconv.Itoa(rack),
		}, tray.Topology(fmt.Sprintf("tray-%d", i)), []int{rack, i % Trays}})
	}
	return f
}

// Rails is the number of rails of each host in a [FatTree].
const Rails = 8

// FatTree returns hosts below the leafs of a fat tree with two levels. Each host has eight GPUs, each with a network interface
// on its own rail. Every leaf is connected to all spines, so the distance between two hosts depends only on their leafs.
func FatTree(leafs, ports int) Fleet {
	var f Fleet
	for i := range leafs * ports {
		devices := must(topology.NewCouples(topology.Family{Driver: "gpu.example.com", Prefix: "gpu"}, topology.Family{Driver: "nic.example.com", Prefix: "nic"}, Rails))
		for _, d := range devices.Devices {
			d.Attributes["rail"] = number(d.Coordinates.Row)
		}
		f = append(f, Host{map[string]string{"example.com/leaf": fmt.Sprintf("leaf-%02d", i/ports)}, devices, []int{i / ports, i % ports}})
	}
	return f
}

func number(n int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: new(int64(n))}
}

// Constraint returns a node set constraint that a class or a PodGroup in a folder of manifests defines.
func Constraint(folder, name string) (*v1alpha1.NodeSetConstraint, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, document := range strings.Split(string(content), "\n---\n") {
			constraints, err := constraintsIn([]byte(document))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if i := slices.IndexFunc(constraints, func(c v1alpha1.NodeSetConstraint) bool { return c.Name == name }); i >= 0 {
				return &constraints[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no class or PodGroup in %s has the constraint %s", folder, name)
}

// constraintsIn returns the node set constraints that an object defines.
func constraintsIn(document []byte) ([]v1alpha1.NodeSetConstraint, error) {
	meta := &metav1.TypeMeta{}
	if err := yaml.Unmarshal(document, meta); err != nil {
		return nil, err
	}
	switch meta.Kind {
	case "DeviceClass":
		class := &resourceapi.DeviceClass{}
		if err := yaml.Unmarshal(document, class); err != nil {
			return nil, err
		}
		return v1alpha1.ClassNodeSets(class)
	case "PodGroup":
		group := &schedulingapi.PodGroup{}
		if err := yaml.Unmarshal(document, group); err != nil {
			return nil, err
		}
		own, err := v1alpha1.GroupNodeSet(group)
		if own == nil || err != nil {
			return nil, err
		}
		return []v1alpha1.NodeSetConstraint{*own}, nil
	}
	return nil, nil
}

// must panics if a model has a mistake, because then every test would fail anyway.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
