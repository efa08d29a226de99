// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/celset/celset/internal/topology"
)

// FromFile reads a machine from a YAML or JSON file with the ResourceSlices of one node. The file may have several documents or
// a list, as "kubectl get resourceslices -o yaml" prints.
func FromFile(path string) (Machine, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Machine{}, err
	}
	m, err := read(content)
	if err == nil && len(m.devices) == 0 {
		err = errors.New("there are no devices in ResourceSlices of resource.k8s.io/v1")
	}
	if err != nil {
		return Machine{}, fmt.Errorf("%s: %w", path, err)
	}
	m.Name, m.Title = path, path
	return m, nil
}

// read parses the ResourceSlices and DeviceClasses of a machine.
func read(content []byte) (Machine, error) {
	var m Machine
	nodes := sets.New[string]()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		var object struct {
			APIVersion, Kind string
			Items            []runtime.RawExtension
		}
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return Machine{}, err
		}
		if len(raw.Raw) == 0 {
			continue
		}
		if err := utilyaml.Unmarshal(raw.Raw, &object); err != nil {
			return Machine{}, err
		}
		items := object.Items
		if items == nil {
			items = []runtime.RawExtension{raw}
		}
		for _, item := range items {
			if err := m.add(item.Raw, nodes); err != nil {
				return Machine{}, err
			}
		}
	}
	if len(nodes) > 1 {
		return Machine{}, fmt.Errorf("the ResourceSlices are those of several nodes: %q: keep those of one", sets.List(nodes))
	}
	return m, nil
}

// add adds a ResourceSlice or a DeviceClass to the machine, and ignores other objects. It adds the slice's node to nodes.
func (m *Machine) add(raw []byte, nodes sets.Set[string]) error {
	var slice resourceapi.ResourceSlice
	if err := utilyaml.Unmarshal(raw, &slice); err != nil {
		return err
	}
	switch {
	case slice.APIVersion != resourceapi.SchemeGroupVersion.String():
		return nil
	case slice.Kind == "DeviceClass":
		class := &resourceapi.DeviceClass{}
		m.classes = append(m.classes, class)
		return utilyaml.Unmarshal(raw, class)
	case slice.Kind != "ResourceSlice":
		return nil
	case slice.Spec.NodeName == nil || len(slice.Spec.SharedCounters) > 0:
		return fmt.Errorf("ResourceSlice %s: only devices of a node without shared counters can be published", slice.Name)
	}
	nodes.Insert(*slice.Spec.NodeName)
	for _, d := range slice.Spec.Devices {
		device := topology.Device{
			Driver: slice.Spec.Driver, Name: d.Name, Attributes: d.Attributes, Capacity: d.Capacity,
			AllowMultipleAllocations: d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations,
		}
		d.Attributes, d.Capacity, d.AllowMultipleAllocations = nil, nil, nil
		if !equality.Semantic.DeepEqual(d, resourceapi.Device{Name: d.Name}) {
			return fmt.Errorf("ResourceSlice %s: device %s: only attributes, capacity and allowMultipleAllocations can be published", slice.Name, d.Name)
		}
		if slices.ContainsFunc(m.devices, func(other topology.Device) bool { return other.Driver == device.Driver && other.Name == device.Name }) {
			return fmt.Errorf("ResourceSlice %s: device %s of %s is there twice", slice.Name, d.Name, slice.Spec.Driver)
		}
		if device.Attributes == nil {
			device.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
		}
		m.devices = append(m.devices, device)
	}
	return nil
}
