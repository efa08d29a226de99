// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario generates inputs for allocators: nodes, resource slices, device classes, claims, and earlier allocations.
//
//	rapid.Check(t, func(t *rapid.T) {
//		c := scenario.Cases(scenario.Alpha).Draw(t, "case")
//		...
//	})
//
// A [Case] is the complete input of an allocator. It can be stored as YAML and loaded again. [Cases] draws random cases within
// a [Profile], which describes the features that the tested allocators support. Names and values come from small sets, so that
// claims and devices match. About half of the claims can be allocated. Each case has a theme: a feature that occurs often in
// the case, while all other features occur rarely.
//
// [Gates] lists the optional features, and [Traits] lists other interesting properties. Tests count them, because otherwise
// they would not show that a generator no longer draws some feature.
//
// The smallest draw of each generator is the plainest value. So shrinking removes everything that a failure does not need.
package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// A Case is the input of one allocation.
type Case struct {
	// Description describes a stored case for readers.
	Description string `json:"description,omitempty"`
	// Outcome is the expected outcome of a stored case: found, none, on-node or fatal.
	Outcome string `json:"outcome,omitempty"`
	// Features holds the optional features that are on.
	Features structured.Features `json:"features"`
	// Node is the node to allocate on. Slices may also contain slices for other nodes.
	Node    *v1.Node                     `json:"node"`
	Slices  []*resourceapi.ResourceSlice `json:"slices,omitempty"`
	Classes []*resourceapi.DeviceClass   `json:"classes,omitempty"`
	Claims  []*resourceapi.ResourceClaim `json:"claims,omitempty"`
	// Allocated lists the devices in use. Some of them may not be published any more.
	Allocated []Device `json:"allocated,omitempty"`
	// Shares lists the shares in use of devices that can be allocated more than once.
	Shares []Share `json:"shares,omitempty"`
}

// A Device identifies a device.
type Device struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
}

func (d Device) id() structured.DeviceID { return structured.MakeDeviceID(d.Driver, d.Pool, d.Device) }

// A Share is one allocated share of a device that can be allocated more than once.
type Share struct {
	Device  `json:",inline"`
	ShareID string `json:"shareID"`
	// Consumed maps capacities to the consumed amounts. It is nil for a share without capacity.
	Consumed map[resourceapi.QualifiedName]resource.Quantity `json:"consumed,omitempty"`
}

// State returns the case's allocated devices and shares in the type that allocators use. Fields without content are nil.
func (c *Case) State() structured.AllocatedState {
	var state structured.AllocatedState
	if len(c.Allocated) > 0 {
		state.AllocatedDevices = sets.New[structured.DeviceID]()
	}
	for _, d := range c.Allocated {
		state.AllocatedDevices.Insert(d.id())
	}
	if len(c.Shares) > 0 {
		state.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
		state.AggregatedCapacity = structured.NewConsumedCapacityCollection()
	}
	for _, share := range c.Shares {
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(share.id(), ptr.To(types.UID(share.ShareID))))
		if share.Consumed != nil {
			state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(share.id(), share.Consumed))
		}
	}
	return state
}

// ClassLister is a lister for the classes of a case.
type ClassLister []*resourceapi.DeviceClass

var _ structured.DeviceClassLister = ClassLister{}

// List implements [structured.DeviceClassLister].
func (l ClassLister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

// Get implements [structured.DeviceClassLister].
func (l ClassLister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: resourceapi.GroupName, Resource: "deviceclasses"}, name)
}

// Clone returns a deep copy.
func (c *Case) Clone() *Case {
	result := *c
	result.Node = c.Node.DeepCopy()
	result.Slices = cloneAll(c.Slices)
	result.Classes = cloneAll(c.Classes)
	result.Claims = cloneAll(c.Claims)
	result.Allocated = slices.Clone(c.Allocated)
	result.Shares = slices.Clone(c.Shares)
	for i := range result.Shares {
		result.Shares[i].Consumed = cloneAmounts(c.Shares[i].Consumed)
	}
	return &result
}

func cloneAmounts(from map[resourceapi.QualifiedName]resource.Quantity) map[resourceapi.QualifiedName]resource.Quantity {
	result := maps.Clone(from)
	for name, amount := range result {
		result[name] = amount.DeepCopy()
	}
	return result
}

func cloneAll[T interface{ DeepCopy() T }](from []T) []T {
	if from == nil {
		return nil
	}
	result := make([]T, len(from))
	for i := range from {
		result[i] = from[i].DeepCopy()
	}
	return result
}

// Devices calls visit for each device of each slice, including slices for other nodes and of other generations.
func (c *Case) Devices(visit func(*resourceapi.ResourceSlice, *resourceapi.Device)) {
	for _, slice := range c.Slices {
		for i := range slice.Spec.Devices {
			visit(slice, &slice.Spec.Devices[i])
		}
	}
}

// fileHeader is the beginning of the file of a stored case.
const fileHeader = `# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0

`

// String returns the case as YAML. It omits empty fields that the encoder would write.
func (c *Case) String() string {
	encoded, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprintf("case %q can't be printed: %v", c.Description, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return fmt.Sprintf("case %q can't be printed: %v", c.Description, err)
	}
	prune(fields)
	text, err := yaml.Marshal(fields)
	if err != nil {
		return fmt.Sprintf("case %q can't be printed: %v", c.Description, err)
	}
	return string(text)
}

// prune removes features that are off, and empty status, from an encoded case.
func prune(fields map[string]any) {
	if features, ok := fields["features"].(map[string]any); ok {
		maps.DeleteFunc(features, func(_ string, on any) bool { return on == false })
	}
	if node, ok := fields["node"].(map[string]any); ok {
		delete(node, "spec")
		if status, ok := node["status"].(map[string]any); ok {
			maps.DeleteFunc(status, func(name string, _ any) bool { return name != "declaredFeatures" })
			deleteEmpty(node, "status")
		}
	}
	if claims, ok := fields["claims"].([]any); ok {
		for _, claim := range claims {
			deleteEmpty(claim.(map[string]any), "status")
		}
	}
}

func deleteEmpty(fields map[string]any, name string) {
	if value, ok := fields[name].(map[string]any); ok && len(value) == 0 {
		delete(fields, name)
	}
}

// GoString makes test frameworks print the case as YAML instead of pointers.
func (c *Case) GoString() string { return "\n" + c.String() }

// Parse parses a case from YAML. It refuses unknown fields.
func Parse(text []byte) (*Case, error) {
	c := &Case{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, fmt.Errorf("parse case: %w", err)
	}
	if c.Node == nil {
		return nil, fmt.Errorf("parse case: field node is missing: a case is about one node")
	}
	return c, nil
}

// Load reads a case from a YAML file.
func Load(path string) (*Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Store writes the case to a YAML file, and creates the folder if needed. It does not rewrite a file with the same content.
func (c *Case) Store(path string) error {
	text := []byte(fileHeader + c.String())
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
