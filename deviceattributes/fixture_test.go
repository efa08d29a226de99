// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
)

const driver = "chip.example.com"

type (
	attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	values     = map[string]resourceapi.DeviceAttribute
)

func integer(value int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: &value}
}

func text(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}

// chips returns a slice with devices chip-0, chip-1 and so on, of a pool that has the name of the node.
func chips(node string, count int) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-chips"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range count {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
			Name:       fmt.Sprint("chip-", i),
			Attributes: attributes{"index": integer(int64(i)), driver + "/bus": text(fmt.Sprint("bus-", i))},
		})
	}
	return slice
}

// object returns an object for the driver of chips.
func object(name string, change ...func(*v1alpha1.DeviceAttributesSpec)) *v1alpha1.DeviceAttributes {
	o := &v1alpha1.DeviceAttributes{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: v1alpha1.DeviceAttributesSpec{Driver: driver},
	}
	for _, c := range change {
		c(&o.Spec)
	}
	return o
}

func computed(name, expression string) func(*v1alpha1.DeviceAttributesSpec) {
	return func(s *v1alpha1.DeviceAttributesSpec) {
		s.Attributes = append(s.Attributes, v1alpha1.ComputedAttribute{Name: name, Expression: expression})
	}
}

func row(key string, of values) func(*v1alpha1.DeviceAttributesSpec) {
	return func(s *v1alpha1.DeviceAttributesSpec) {
		if s.Table == nil {
			s.Table = &v1alpha1.AttributeTable{Key: v1alpha1.TableKeyName}
		}
		s.Table.Rows = append(s.Table.Rows, v1alpha1.AttributeRow{Key: key, Values: of})
	}
}

func onNodes(labels map[string]string) func(*v1alpha1.DeviceAttributesSpec) {
	return func(s *v1alpha1.DeviceAttributesSpec) { s.NodeSelector = &metav1.LabelSelector{MatchLabels: labels} }
}

func inDomain(domain string) func(*v1alpha1.DeviceAttributesSpec) {
	return func(s *v1alpha1.DeviceAttributesSpec) { s.Domain = domain }
}

// labelsOf maps the names of nodes to their labels.
type labelsOf map[string]map[string]string

func (l labelsOf) get(node string) (map[string]string, bool) {
	labels, ok := l[node]
	return labels, ok
}

func newEnricher(t testing.TB, objects ...*v1alpha1.DeviceAttributes) *deviceattributes.Enricher {
	t.Helper()
	e, err := deviceattributes.NewEnricher(deviceattributes.Config{})
	require.NoError(t, err)
	require.NoError(t, e.Set(t.Context(), objects))
	return e
}

// enrich returns the attributes of each device that the slices lack without the objects.
func enrich(t testing.TB, nodes labelsOf, slices []*resourceapi.ResourceSlice, objects ...*v1alpha1.DeviceAttributes) (map[string]attributes, *deviceattributes.Report) {
	t.Helper()
	before := make([]*resourceapi.ResourceSlice, len(slices))
	for i, slice := range slices {
		before[i] = slice.DeepCopy()
	}
	enriched, report, err := deviceattributes.Apply(t.Context(), objects, slices, nodes.get)
	require.NoError(t, err)
	require.Equal(t, before, slices, "the input was modified")
	require.Len(t, enriched, len(slices))
	added := map[string]attributes{}
	for i, slice := range enriched {
		for j, d := range slice.Spec.Devices {
			for name, value := range d.Attributes {
				if _, isPublished := slices[i].Spec.Devices[j].Attributes[name]; isPublished {
					continue
				}
				id := slice.Spec.Pool.Name + "/" + d.Name
				if added[id] == nil {
					added[id] = attributes{}
				}
				added[id][name] = value
			}
		}
	}
	return added, report
}
