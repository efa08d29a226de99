// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"strings"

	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Sizes has upper bounds for the sizes of the values that some devices contain.
type Sizes struct {
	// Text is the length of the longest string in bytes: driver, name or value.
	Text int
	// Elements is the number of elements of the largest list or map, and List the number of elements of the largest list.
	Elements, List int
}

// LargestSizes returns the limits of the resource.k8s.io API.
func LargestSizes() Sizes {
	return Sizes{
		Text: max(resourceapi.DriverNameMaxLength, resourceapi.DeviceMaxDomainLength, resourceapi.DeviceMaxIDLength,
			resourceapi.DeviceAttributeMaxValueLength),
		Elements: max(resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice, resourceapi.ResourceSliceMaxAttributeValuesPerDevice),
		List:     resourceapi.ResourceSliceMaxAttributeValuesPerDevice,
	}
}

// LargestSizes returns the limits of the API for the elements of the expression's set: devices or nodes.
func (e *Expression) LargestSizes() Sizes {
	sizes := LargestSizes()
	if e.set == nodesVariable {
		sizes.Text, sizes.Elements = max(sizes.Text, maxLabelKey), max(sizes.Elements, MaxLabels, MaxNodeDevices, v1alpha1.MaxNodeSetSize)
	}
	return sizes
}

// SizesOf returns the sizes of the largest values of some devices.
func SizesOf(devices []*Device) Sizes {
	var result Sizes
	for _, d := range devices {
		result.text(d.driver)
		result.Elements = max(result.Elements, len(d.source.Attributes), len(d.source.Capacity))
		for name, attribute := range d.source.Attributes {
			switch name {
			case NodeDevices:
				result = result.with(d)
				continue
			case NodePods:
				result = result.withPods(d)
				continue
			}
			result.name(name)
			result.attribute(&attribute)
		}
		for name := range d.source.Capacity {
			result.name(name)
		}
	}
	return result
}

// with returns the maximum of the sizes and the sizes of a node's devices.
func (s Sizes) with(node *Device) Sizes {
	node.once.Do(node.convert)
	of := SizesOf(node.devices.devices)
	return Sizes{max(s.Text, of.Text), max(s.Elements, of.Elements, len(node.devices.devices)), max(s.List, of.List)}
}

// withPods returns the sizes including the pods of a node.
func (s Sizes) withPods(node *Device) Sizes {
	node.once.Do(node.convert)
	s.Elements, s.List = max(s.Elements, len(node.pods.pods)), max(s.List, len(node.pods.pods))
	for _, p := range node.pods.pods {
		s.Elements = max(s.Elements, p.size)
		for _, key := range p.labels.keys {
			value, _ := p.labels.Find(types.String(key))
			s.Text = max(s.Text, len(key), len(value.(types.String)))
		}
	}
	return s
}

func (s *Sizes) text(text string) { s.Text = max(s.Text, len(text)) }

func (s *Sizes) name(name resourceapi.QualifiedName) {
	domain, id, qualified := strings.Cut(string(name), "/")
	s.Text = max(s.Text, len(domain))
	if qualified {
		s.Text = max(s.Text, len(id))
	}
}

func (s *Sizes) attribute(a *resourceapi.DeviceAttribute) {
	for _, text := range []*string{a.StringValue, a.VersionValue} {
		if text != nil {
			s.text(*text)
		}
	}
	for _, list := range [][]string{a.StringValues, a.VersionValues} {
		for _, text := range list {
			s.text(text)
		}
	}
	s.List = max(s.List, len(a.IntValues), len(a.BoolValues), len(a.StringValues), len(a.VersionValues))
	s.Elements = max(s.Elements, s.List)
}
