// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device"
)

// Node is a candidate for a set of nodes.
type Node struct {
	Name   string
	Labels map[string]string
	// Slices holds the ResourceSlices of the node.
	Slices []*resourceapi.ResourceSlice
	// Placed is true if the node already runs pods of the group.
	Placed bool
	// Elsewhere is indexed by the kind of pods. An entry is true if the specification of such a pod excludes the node, for example
	// by a node selector. It may be nil.
	Elsewhere []bool
	// Takes is indexed by the kind of pods. An entry is true if the node can take a pod of this kind. Free is the number of
	// further pods of the group that may run on the node. It is used only if a node may run several pods of the group.
	Takes []bool
	Free  int
	// Pods holds the pods of the group that run on the node. Running holds the same pods as expressions read them
	// ([Reading.OfPod]), if expressions read pods.
	Pods    []*v1.Pod
	Running []device.OfPod
	// Sets holds, for each kind, the possible sets of devices of a pod, if expressions read devices. Has holds the set of a running
	// pod.
	Sets [][]Set
	Has  Set
}

// reading describes the properties of nodes that expressions read.
type reading struct {
	labels, attributes map[string]bool
	// all is true if the names of the properties can't be determined, so that expressions may read any property.
	all, capacity bool
	// devices is true if expressions read the devices of pods.
	devices bool
}

func readingOf(expressions []*device.Expression) reading {
	r := reading{labels: map[string]bool{}, attributes: map[string]bool{}}
	for _, e := range expressions {
		reads := e.ReadSet()
		r.all = r.all || reads.All
		r.capacity = r.capacity || reads.All || e.ReadsCapacity()
		for name := range reads.Attributes {
			switch full := resourceapi.QualifiedName(name.Domain + "/" + name.ID); {
			case full == device.NodeLabel(name.ID):
				r.labels[name.ID] = true
			case full == device.NodeDevices:
				r.devices = true
			case name.IsOfPod():
				// Reading.pods holds these properties.
			default:
				r.attributes[string(full)] = true
			}
		}
	}
	return r
}

// member is a candidate for a set: a node with the devices and the pods that it gets, as far as expressions read them. A node has
// a member for each kind of pods and each set of devices, if expressions read devices. It has a member for each load that it can
// take, if expressions read pods.
type member struct {
	// node is the index of the node. kind is the kind of the pod, and set is the index in Node.Sets. kind and set are 0 if
	// expressions read no devices.
	node, kind, set int
	// request is the index of the request that the member is for, if expressions read pods but no devices. Otherwise it is 0.
	request int
	// load holds the pods for the node. It is nil if expressions read neither devices nor pods.
	load Load
	properties
}

// Properties implements [allocator.Candidate].
func (m member) Properties() (map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, map[resourceapi.QualifiedName]resourceapi.DeviceCapacity) {
	return m.attributes, m.capacity
}

// members returns the candidates for a set. If expressions may read all labels, it leaves out nodes with more labels than the
// cost limit of expressions allows.
func (p *Problem) members(nodes []Node, r reading) []member {
	all := make([]member, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if !n.Placed && !slices.Contains(n.Takes, true) || r.all && len(n.Labels) > device.MaxLabels {
			continue
		}
		m := member{node: i, properties: r.ofNode(n)}
		switch {
		case p.ReadsDevices:
			all = p.withDevices(all, m, n)
		case p.ReadsPods:
			all = p.withPods(all, m, n)
		default:
			if !p.isPlain() {
				for i := range p.requests {
					if p.requests[i].placed == n.Placed {
						m.mark(&p.requests[i])
					}
				}
			}
			all = append(all, m)
		}
	}
	// Selectors are not evaluated for a candidate that looks like the candidate before it.
	slices.SortStableFunc(all, func(a, b member) int { return a.request - b.request })
	return all
}

// withDevices adds a member for each kind of pods and each set of devices of such a pod.
func (p *Problem) withDevices(all []member, m member, n *Node) []member {
	if n.Placed {
		return append(all, p.with(m, n, &n.Has))
	}
	for kind, sets := range n.Sets {
		if !n.Takes[kind] {
			continue
		}
		m.kind, m.load = kind, make(Load, len(p.Kinds))
		m.load[kind] = 1
		for m.set = range sets {
			all = append(all, p.with(m, n, &sets[m.set]))
		}
	}
	return all
}

// withPods adds a member for each request whose load the node can take.
func (p *Problem) withPods(all []member, m member, n *Node) []member {
	for i := range p.requests {
		request := &p.requests[i]
		if request.placed != n.Placed || !p.takes(m.node, request.load) {
			continue
		}
		own := m
		own.attributes, own.load = maps.Clone(m.attributes), request.load
		p.addPods(&own, n)
		if p.isAble != nil && p.isAble(m.node, request.load) {
			own.attributes[device.NodeLabel(ableLabel)] = resourceapi.DeviceAttribute{StringValue: ptr.To("")}
		}
		if !p.isPlain() {
			own.mark(request)
		}
		own.request = i
		all = append(all, own)
	}
	return all
}

// addPods adds the pods that run on the node and the pods of the load, as expressions read them.
func (p *Problem) addPods(m *member, n *Node) {
	pods := slices.Clone(n.Running)
	for kind, count := range m.load {
		for range count {
			pods = append(pods, p.Pods[kind])
		}
	}
	// If the value can't be represented, expressions that read the pods fail.
	if value, err := device.NodePodsOf(pods); err == nil {
		m.attributes[device.NodePods] = value
	}
}

// ofNode returns the properties of a node that are read.
func (r *reading) ofNode(n *Node) properties {
	result := properties{attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
	for key, value := range n.Labels {
		if r.all || r.labels[key] {
			result.attributes[device.NodeLabel(key)] = resourceapi.DeviceAttribute{StringValue: &value}
		}
	}
	if r.all || r.capacity || len(r.attributes) > 0 {
		common := inCommon(n.Slices, *r)
		maps.Copy(result.attributes, common.attributes)
		result.capacity = common.capacity
	}
	return result
}

// mark adds the name of the request that the member is for, which the selectors of requests read.
func (m *member) mark(of *request) {
	m.attributes[device.NodeDriver+"/"+ofRequest] = resourceapi.DeviceAttribute{StringValue: &of.name}
}

// with returns the member with the devices of a set.
func (p *Problem) with(m member, n *Node, set *Set) member {
	m.attributes = maps.Clone(m.attributes)
	m.attributes[device.NodeDevices] = set.devices
	mine := []string{strconv.Itoa(m.node)}
	if !p.sharesDevices {
		mine = append(mine, set.shared...)
	}
	m.attributes[device.NodeDriver+"/"+takes] = resourceapi.DeviceAttribute{StringValues: mine}
	if p.ReadsPods {
		p.addPods(&m, n)
	}
	if !p.isPlain() {
		for i := range p.requests {
			request := &p.requests[i]
			if request.placed == n.Placed && (n.Placed || request.kind == m.kind) {
				m.mark(request)
			}
		}
	}
	return m
}

// properties holds the attributes and capacities of one device, or the common properties of several devices.
type properties struct {
	attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	capacity   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
}

// inCommon returns the properties that all devices of a driver have in common, in the latest slices of their pools. If two
// drivers have different values for a property, it leaves out the property.
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

// of returns those properties of a device that expressions read. A name without a domain gets the driver as its domain.
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

// keepCommon removes the properties that other lacks or has with different values.
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
