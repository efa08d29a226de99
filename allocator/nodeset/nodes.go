// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device"
)

// Node is a node that may be in a set.
type Node struct {
	Name   string
	Labels map[string]string
	// Slices holds the ResourceSlices of the node.
	Slices []*resourceapi.ResourceSlice
	// Placed is true if pods of the group run on the node.
	Placed bool
	// Elsewhere is true if the specification of the pods excludes the node.
	Elsewhere bool
	// Takes reports, for each kind of pods, whether the node can take one. Free is the number of further pods of the group that may
	// run there; 0 means one.
	Takes []bool
	Free  int
	// Sets holds, for each kind, the possible sets of devices of a pod, if expressions read devices. Has holds the set of a running
	// pod.
	Sets [][]Set
	Has  Set
}

// reading holds the properties of nodes that expressions read.
type reading struct {
	labels, attributes map[string]bool
	// all is true if the properties can't be determined, so that any may be read.
	all, capacity bool
	// devices is true if expressions read the devices that pods get.
	devices bool
}

func readingOf(expressions []*device.Expression) reading {
	r := reading{labels: map[string]bool{}, attributes: map[string]bool{}}
	for _, e := range expressions {
		reads := e.ReadSet()
		r.all = r.all || reads.All
		r.capacity = r.capacity || reads.All || e.ReadsCapacity()
		for name := range reads.Attributes {
			switch full := resourceapi.QualifiedName(name.Domain + "/" + name.ID); full {
			case device.NodeLabel(name.ID):
				r.labels[name.ID] = true
			case device.NodeDevices:
				r.devices = true
			default:
				r.attributes[string(full)] = true
			}
		}
	}
	return r
}

// slice returns the nodes that may be in a set, as devices named by index. If all labels may be read, it leaves out nodes with
// more labels than the cost limit of expressions allows.
func (p *Problem) slice(nodes []Node, r reading) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
		Driver: device.NodeDriver, Pool: resourceapi.ResourcePool{Name: device.NodeDriver, ResourceSliceCount: 1}, AllNodes: ptr.To(true),
		Devices: make([]resourceapi.Device, 0, len(nodes)),
	}}
	slice.Name = device.NodeDriver
	for i := range nodes {
		n := &nodes[i]
		if !n.Placed && !slices.Contains(n.Takes, true) || r.all && len(n.Labels) > device.MaxLabels {
			continue
		}
		d := resourceapi.Device{Name: strconv.Itoa(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
		for key, value := range n.Labels {
			if r.all || r.labels[key] {
				d.Attributes[device.NodeLabel(key)] = resourceapi.DeviceAttribute{StringValue: &value}
			}
		}
		if r.all || r.capacity || len(r.attributes) > 0 {
			common := inCommon(n.Slices, r)
			maps.Copy(d.Attributes, common.attributes)
			d.Capacity = common.capacity
		}
		if !p.isPlain() {
			for kind := range p.Wanted {
				mark(&d, ofKind(kind), !n.Placed && (!p.ReadsDevices || n.Takes[kind]))
			}
			mark(&d, placed, n.Placed)
		}
		if !p.ReadsDevices {
			slice.Spec.Devices = append(slice.Spec.Devices, d)
			continue
		}
		if n.Placed {
			slice.Spec.Devices = append(slice.Spec.Devices, p.with(d, i, 0, 0, &n.Has))
			continue
		}
		for kind, sets := range n.Sets {
			for at := range sets {
				if n.Takes[kind] {
					slice.Spec.Devices = append(slice.Spec.Devices, p.with(d, i, kind, at, &sets[at]))
				}
			}
		}
	}
	return slice
}

func mark(d *resourceapi.Device, name string, is bool) {
	d.Attributes[resourceapi.QualifiedName(device.NodeDriver+"/"+name)] = resourceapi.DeviceAttribute{BoolValue: &is}
}

// with returns a node together with a set of devices for a pod of a kind.
func (p *Problem) with(node resourceapi.Device, index, kind, at int, set *Set) resourceapi.Device {
	own := node.Name
	node.Name, node.Attributes = memberName(index, kind, at), maps.Clone(node.Attributes)
	node.Attributes[device.NodeDevices] = set.devices
	mine := []string{own}
	if !p.sharesDevices {
		mine = append(mine, set.shared...)
	}
	node.Attributes[device.NodeDriver+"/"+takes] = resourceapi.DeviceAttribute{StringValues: mine}
	if !p.isPlain() {
		for other := range p.Wanted {
			if other != kind {
				mark(&node, ofKind(other), false)
			}
		}
	}
	return node
}

// memberName returns the name of a member. [memberOf] parses it.
func memberName(node, kind, set int) string { return fmt.Sprintf("%d.%d.%d", node, kind, set) }

// memberOf parses the name of a member. kind and set are 0 if the name lacks them.
func memberOf(name string) (m chosenNode, err error) {
	if n, err := fmt.Sscanf(name, "%d.%d.%d", &m.node, &m.kind, &m.set); n == 3 {
		return m, err
	}
	m.node, err = strconv.Atoi(name)
	return m, err
}

// properties holds the attributes and capacities of a device, or the ones that several devices share.
type properties struct {
	attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	capacity   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
}

// inCommon returns the properties that all devices of a driver share in the current slices of their pools. It leaves out a
// property if drivers have different values.
func inCommon(slicesOfNode []*resourceapi.ResourceSlice, r reading) properties {
	type pool struct{ driver, name string }
	generations := map[pool]int64{}
	for _, s := range slicesOfNode {
		at := pool{s.Spec.Driver, s.Spec.Pool.Name}
		generations[at] = max(generations[at], s.Spec.Pool.Generation)
	}
	byDriver := map[string]*properties{}
	for _, s := range slicesOfNode {
		if s.Spec.Pool.Generation < generations[pool{s.Spec.Driver, s.Spec.Pool.Name}] {
			continue
		}
		for i := range s.Spec.Devices {
			own := r.of(s.Spec.Driver, &s.Spec.Devices[i])
			if known := byDriver[s.Spec.Driver]; known == nil {
				byDriver[s.Spec.Driver] = &own
			} else {
				known.keepCommon(own)
			}
		}
	}
	result := properties{map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}, map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}}
	differs := map[resourceapi.QualifiedName]bool{}
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		for name, value := range byDriver[driver].attributes {
			if other, has := result.attributes[name]; has && !view.IsSameValue(&value, &other) {
				differs[name] = true
			}
			result.attributes[name] = value
		}
		for name, value := range byDriver[driver].capacity {
			if other, has := result.capacity[name]; has && value.Value.Cmp(other.Value) != 0 {
				differs[name] = true
			}
			result.capacity[name] = value
		}
	}
	for name := range differs {
		delete(result.attributes, name)
		delete(result.capacity, name)
	}
	return result
}

// of returns the properties of a device that are read, by full names.
func (r reading) of(driver string, d *resourceapi.Device) properties {
	full := func(name resourceapi.QualifiedName) resourceapi.QualifiedName {
		if strings.Contains(string(name), "/") {
			return name
		}
		return resourceapi.QualifiedName(driver + "/" + string(name))
	}
	p := properties{attributes: make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(r.attributes))}
	for name, value := range d.Attributes {
		if name := full(name); r.all || r.attributes[string(name)] {
			p.attributes[name] = value
		}
	}
	if r.capacity {
		p.capacity = make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity, len(d.Capacity))
		for name, value := range d.Capacity {
			p.capacity[full(name)] = resourceapi.DeviceCapacity{Value: value.Value}
		}
	}
	return p
}

// keepCommon removes properties that another device lacks or has with different values.
func (p *properties) keepCommon(other properties) {
	for name, value := range p.attributes {
		if o, has := other.attributes[name]; !has || !view.IsSameValue(&value, &o) {
			delete(p.attributes, name)
		}
	}
	for name, value := range p.capacity {
		if o, has := other.capacity[name]; !has || value.Value.Cmp(o.Value) != 0 {
			delete(p.capacity, name)
		}
	}
}
