// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes_test

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
)

func ExampleApply() {
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: "chip.example.com", NodeName: new("node-a"), Pool: resourceapi.ResourcePool{Name: "node-a"},
			Devices: []resourceapi.Device{{
				Name:       "chip-5",
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: new(int64(5))}},
			}},
		},
	}
	grid := &v1alpha1.DeviceAttributes{
		ObjectMeta: metav1.ObjectMeta{Name: "grid"},
		Spec: v1alpha1.DeviceAttributesSpec{
			Driver: "chip.example.com",
			Attributes: []v1alpha1.ComputedAttribute{
				{Name: "x", Expression: "device.attributes['chip.example.com'].index % 4"},
				{Name: "rack", Expression: "node.labels['example.com/rack']"},
			},
			Table: &v1alpha1.AttributeTable{Key: "name", Rows: []v1alpha1.AttributeRow{
				{Key: "chip-5", Values: map[string]resourceapi.DeviceAttribute{"links": {StringValues: []string{"chip-4"}}}},
				{Key: "chip-6", Values: map[string]resourceapi.DeviceAttribute{"links": {StringValues: []string{"chip-7"}}}},
			}},
		},
	}
	labels := func(node string) (map[string]string, bool) {
		return map[string]string{"example.com/rack": "r7"}, node == "node-a"
	}
	enriched, report, err := deviceattributes.Apply(context.Background(), []*v1alpha1.DeviceAttributes{grid}, []*resourceapi.ResourceSlice{slice}, labels)
	if err != nil {
		panic(err)
	}
	attributes := enriched[0].Spec.Devices[0].Attributes
	fmt.Println(*attributes["topology.celset.dev/x"].IntValue, *attributes["topology.celset.dev/rack"].StringValue, attributes["topology.celset.dev/links"].StringValues)
	fmt.Println(report.Origin("chip.example.com", "node-a", "chip-5", "topology.celset.dev/x"))
	fmt.Println(report.Objects[0].UnmatchedRows.First)
	// Output:
	// 1 r7 [chip-4]
	// grid true
	// [chip-6]
}
