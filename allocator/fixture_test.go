// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/search"
)

// By default there is one driver with one pool on one node, and one class with the name of the driver.
const (
	driver   = "mla.example.com"
	nodeName = "node-1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// allOn holds all features except ListTypeAttributes, which changes the meaning of attribute constraints.
var allOn = structured.Features{
	AdminAccess:             true,
	CompatibilityGroups:     true,
	ConsumableCapacity:      true,
	DerivedAttributes:       true,
	DeviceBindingAndStatus:  true,
	DeviceTaints:            true,
	FractionalCapacityRange: true,
	OptionalNodeOperations:  true,
	PartitionableDevices:    true,
	PrioritizedList:         true,
}

// with returns a changed copy of allOn.
func with(change func(*structured.Features)) *structured.Features {
	features := allOn
	change(&features)
	return &features
}

var listsOn = with(func(f *structured.Features) { f.ListTypeAttributes = true })

// scenario holds the inputs of an allocation.
type scenario struct {
	// features defaults to allOn.
	features *structured.Features
	// classes holds additional classes, besides the class of the driver.
	classes []*resourceapi.DeviceClass
	slices  []*sliceBuilder
	claims  []*claimBuilder
	// node defaults to node-1.
	node *v1.Node
	// inUse holds the names of allocated devices in pool-1 of the driver.
	inUse []string
	// shares holds the allocated shares of devices in pool-1 of the driver.
	shares []share
	opts   []Option
}

func (s scenario) allocator(t testing.TB) *Allocator {
	t.Helper()
	features := ptr.Deref(s.features, allOn)
	cache := dracel.NewCache(10, dracel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity, EnableListTypeAttributes: features.ListTypeAttributes,
	})
	a, err := NewAllocator(t.Context(), features, s.state(), s.lister(), s.apiSlices(), cache, s.opts...)
	require.NoError(t, err)
	return a
}

func (s scenario) apiSlices() []*resourceapi.ResourceSlice {
	var result []*resourceapi.ResourceSlice
	for _, slice := range s.slices {
		result = append(result, slice.ResourceSlice)
	}
	return result
}

func (s scenario) lister() classes {
	result := classes{driver: classOf(driver)}
	for _, class := range s.classes {
		result[class.Name] = class
	}
	return result
}

// state returns the allocated state. Empty sets are nil.
func (s scenario) state() structured.AllocatedState {
	var state structured.AllocatedState
	if len(s.inUse) > 0 {
		state.AllocatedDevices = sets.New[structured.DeviceID]()
		for _, name := range s.inUse {
			state.AllocatedDevices.Insert(deviceID(name))
		}
	}
	for _, share := range s.shares {
		share.addTo(&state)
	}
	return state
}

func deviceID(name string) structured.DeviceID {
	return structured.MakeDeviceID(driver, "pool-1", name)
}

func (s scenario) onNode() *v1.Node {
	if s.node != nil {
		return s.node
	}
	return newNode(nodeName)
}

func (s scenario) apiClaims() []*resourceapi.ResourceClaim {
	result := make([]*resourceapi.ResourceClaim, len(s.claims))
	for i, claim := range s.claims {
		result[i] = claim.ResourceClaim
	}
	return result
}

func (s scenario) allocate(t testing.TB) ([]resourceapi.AllocationResult, error) {
	t.Helper()
	return s.allocator(t).Allocate(t.Context(), s.onNode(), s.apiClaims())
}

// search returns the search that Allocate would run.
func (s scenario) search(t testing.TB) *search.Search {
	t.Helper()
	a := s.allocator(t)
	on, err := a.planner.PlanFor(s.apiClaims()).On(s.onNode())
	require.NoError(t, err)
	result, err := search.New(t.Context(), on, nil)
	require.NoError(t, err)
	return result
}

// requireDevices requires these devices, written as "request=device" in order. No devices mean that the claims don't fit.
func (s scenario) requireDevices(t testing.TB, want ...string) {
	t.Helper()
	results, err := s.allocate(t)
	require.NoError(t, err)
	require.Equal(t, want, devicesOf(results))
	require.Equal(t, len(want) == 0, results == nil)
}

func (s scenario) requireError(t testing.TB, message string) {
	t.Helper()
	results, err := s.allocate(t)
	require.ErrorContains(t, err, message)
	require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
	require.Nil(t, results)
}

func devicesOf(results []resourceapi.AllocationResult) []string {
	var names []string
	for _, result := range results {
		for _, d := range result.Devices.Results {
			names = append(names, d.Request+"="+d.Device)
		}
	}
	return names
}

func newNode(name string, labels ...string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		node.Labels[label] = "true"
	}
	return node
}

// classes is a structured.DeviceClassLister.
type classes map[string]*resourceapi.DeviceClass

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	var result []*resourceapi.DeviceClass
	for _, class := range c {
		result = append(result, class)
	}
	return result, nil
}

func classOf(name string, selectors ...string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.DeviceClassSpec{Selectors: celSelectors(selectors)},
	}
}

func celSelectors(expressions []string) []resourceapi.DeviceSelector {
	var result []resourceapi.DeviceSelector
	for _, expression := range expressions {
		result = append(result, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return result
}

// attrs holds attributes as Go values: int, string, bool or a list of one of them.
type attrs map[resourceapi.QualifiedName]any

func newDevice(name string, a attrs, edits ...func(*resourceapi.Device)) resourceapi.Device {
	d := resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
	for id, value := range a {
		switch value := value.(type) {
		case int:
			d.Attributes[id] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
		case string:
			d.Attributes[id] = resourceapi.DeviceAttribute{StringValue: &value}
		case bool:
			d.Attributes[id] = resourceapi.DeviceAttribute{BoolValue: &value}
		case []int64:
			d.Attributes[id] = resourceapi.DeviceAttribute{IntValues: value}
		case []string:
			d.Attributes[id] = resourceapi.DeviceAttribute{StringValues: value}
		case []bool:
			d.Attributes[id] = resourceapi.DeviceAttribute{BoolValues: value}
		case resourceapi.DeviceAttribute:
			d.Attributes[id] = value
		}
	}
	for _, edit := range edits {
		edit(&d)
	}
	return d
}

// ring returns the devices mla-0 to mla-<n-1> with their index.
func ring(n int) []resourceapi.Device {
	devices := make([]resourceapi.Device, n)
	for i := range devices {
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": i})
	}
	return devices
}

// mesh returns the devices mla-<row><col> with row and col.
func mesh(rows, cols int) []resourceapi.Device {
	var devices []resourceapi.Device
	for row := range rows {
		for col := range cols {
			devices = append(devices, newDevice(fmt.Sprintf("mla-%d%d", row, col), attrs{"row": row, "col": col}))
		}
	}
	return devices
}

type sliceBuilder struct{ *resourceapi.ResourceSlice }

// slice returns the only slice of generation 1 of pool-1, for node-1.
func slice(name string, devices ...resourceapi.Device) *sliceBuilder {
	return &sliceBuilder{&resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			Pool:     resourceapi.ResourcePool{Name: "pool-1", Generation: 1, ResourceSliceCount: 1},
			NodeName: ptr.To(nodeName),
			Devices:  devices,
		},
	}}
}

func (b *sliceBuilder) edit(edit func(*resourceapi.ResourceSliceSpec)) *sliceBuilder {
	edit(&b.Spec)
	return b
}

func (b *sliceBuilder) pool(name string, generation, count int64) *sliceBuilder {
	b.Spec.Pool = resourceapi.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: count}
	return b
}

func (b *sliceBuilder) driver(name string) *sliceBuilder {
	b.Spec.Driver = name
	return b
}

func (b *sliceBuilder) onNode(name string) *sliceBuilder {
	b.Spec.NodeName = &name
	return b
}

func (b *sliceBuilder) everywhere() *sliceBuilder {
	b.Spec.NodeName, b.Spec.AllNodes = nil, ptr.To(true)
	return b
}

func (b *sliceBuilder) onNodesWith(labels ...string) *sliceBuilder {
	b.Spec.NodeName, b.Spec.NodeSelector = nil, nodesWith(labels...)
	return b
}

func (b *sliceBuilder) perDevice() *sliceBuilder {
	b.Spec.NodeName, b.Spec.PerDeviceNodeSelection = nil, ptr.To(true)
	return b
}

// nodesWith returns a selector for nodes with all the labels.
func nodesWith(labels ...string) *v1.NodeSelector {
	var term v1.NodeSelectorTerm
	for _, label := range labels {
		term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{Key: label, Operator: v1.NodeSelectorOpExists})
	}
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}
}

// Expressions that several tests use.
const (
	indices = "devices.map(d, d.attributes['mla.example.com'].index)"

	inARow = indices + ".max() - " + indices + ".min() == devices.size() - 1"

	// neighbors requires that each device has two neighbours in the mesh.
	neighbors = `devices.all(d, devices.filter(o, d != o &&
		cel.bind(a, d.attributes['mla.example.com'], cel.bind(b, o.attributes['mla.example.com'],
		a.row == b.row && (a.col == b.col + 1 || a.col == b.col - 1) ||
		a.col == b.col && (a.row == b.row + 1 || a.row == b.row - 1)))).size() >= 2)`

	index = "device.attributes['mla.example.com'].index"
)
