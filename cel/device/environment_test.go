// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// The two expressions of KEP-5254: four devices in a row, and four devices with two neighbours each.
const (
	ringExpression = `size(devices) == 4 &&
devices.map(d, d.attributes['mla.example.com'].index).max() -
devices.map(d, d.attributes['mla.example.com'].index).min() == 3`

	gridExpression = `size(devices) == 4 &&
devices.all(d,
  devices.filter(other,
    d != other &&
    ((d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row &&
      (d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col + 1 ||
       d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col - 1)) ||
     (d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col &&
      (d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row + 1 ||
       d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row - 1)))
  ).size() >= 2
)`
)

func TestKEPRing(t *testing.T) {
	devices := ring(8)
	for name, test := range map[string]struct {
		indices []int
		want    bool
	}{
		"first four":       {[]int{0, 1, 2, 3}, true},
		"last four":        {[]int{4, 5, 6, 7}, true},
		"in any order":     {[]int{5, 2, 4, 3}, true},
		"a gap":            {[]int{0, 1, 2, 4}, false},
		"around the end":   {[]int{6, 7, 0, 1}, false},
		"three":            {[]int{0, 1, 3}, false},
		"five":             {[]int{0, 1, 2, 3, 3}, false},
		"none":             {nil, false},
		"every second one": {[]int{0, 2, 4, 6}, false},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, err := satisfied(t, ringExpression, pick(devices, test.indices...)...)
			require.NoError(t, err)
			require.Equal(t, test.want, verdict)
		})
	}
	_ = requireRuntimeError(t, "no such key: index", ringExpression, append(ring(3), newDevice(attributes{"row": 1}))...)
}

func TestKEPGrid(t *testing.T) {
	devices := mesh(3, 3)
	for name, test := range map[string]struct {
		indices []int
		want    bool
	}{
		"top left":     {[]int{0, 1, 3, 4}, true},
		"bottom right": {[]int{8, 4, 5, 7}, true},
		"a row and":    {[]int{0, 1, 2, 3}, false},
		"zigzag":       {[]int{0, 1, 4, 5}, false},
		"corners":      {[]int{0, 2, 6, 8}, false},
		"three":        {[]int{0, 1, 3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, err := satisfied(t, gridExpression, pick(devices, test.indices...)...)
			require.NoError(t, err)
			require.Equal(t, test.want, verdict)
		})
	}
	_ = requireRuntimeError(t, "no such key: row", gridExpression, ring(4)...)
}

func TestCompileErrors(t *testing.T) {
	for name, test := range map[string]struct {
		expression   string
		reason       cel.Reason
		line, column int
		message      string
	}{
		"one device":       {"device.driver == 'x'", cel.ReasonInvalid, 1, 1, "undeclared reference to 'device'"},
		"no such field":    {"devices.all(d,\n  d.name == 'x')", cel.ReasonInvalid, 2, 4, "undefined field 'name'"},
		"not a list":       {"devices.driver == 'x'", cel.ReasonInvalid, 1, 8, "does not support field selection"},
		"capacity as int":  {"devices.all(d, d.capacity[d.driver].memory > 3)", cel.ReasonInvalid, 1, 44, "no matching overload for '_>_'"},
		"list":             {"devices", cel.ReasonType, 1, 1, "but returns list(kubernetes.DRADevice)"},
		"int":              {"devices.size()", cel.ReasonType, 1, 1, "but returns int"},
		"unordered device": {"devices.max() == devices[0]", cel.ReasonInvalid, 1, 12, "no matching overload for 'max'"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := environment.Compile(t.Context(), test.expression)
			var failure *cel.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, test.reason, failure.Reason)
			require.Equal(t, []int{test.line, test.column}, []int{failure.Line, failure.Column}, "%v", err)
			require.Contains(t, failure.Message, test.message)
		})
	}
}

// TestConfiguration checks that the environment uses the name, limits and observer of its configuration.
func TestConfiguration(t *testing.T) {
	observed := &names{}
	limited, err := device.NewEnvironment(cel.Config{Name: "ignored", CostLimit: 50, Observer: observed})
	require.NoError(t, err)
	expression, err := limited.Compile(t.Context(), gridExpression)
	require.NoError(t, err)
	_, err = expression.Satisfied(t.Context(), mesh(2, 2), nil)
	require.ErrorContains(t, err, "cost limit of 50")
	require.Equal(t, []string{"devices", "devices"}, observed.seen)
}

// names is an observer that records the names of the environments.
type names struct {
	mutex sync.Mutex
	seen  []string
}

func (n *names) add(name string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.seen = append(n.seen, name)
}

func (n *names) ObserveCompilation(environment string, _ bool, _ error)  { n.add(environment) }
func (n *names) ObserveEvaluation(environment string, _ uint64, _ error) { n.add(environment) }

// TestConcurrentUse shares devices and expressions among goroutines. Run it with the race detector. CEL libraries write to
// quantities of different magnitude and to error values, so the devices have both.
func TestConcurrentUse(t *testing.T) {
	expressions := map[*device.Expression]bool{
		compile(t, ringExpression): true,
		compile(t, gridExpression): true,
		compile(t, "devices.all(d, devices.exists(o, !o.capacity[o.driver].memory.isLessThan(d.capacity[d.driver].memory)))"): true,
		compile(t, "devices.all(d, d.attributes[d.driver].broken == 1)"):                                                      false,
	}
	for range 20 { // devices are converted once, so each round makes new ones
		devices := make([]*device.Device, 4)
		for i := range devices {
			devices[i] = device.New(driver, &resourceapi.Device{
				Attributes: attributes{"index": i, "row": i / 2, "col": i % 2, "broken": resourceapi.DeviceAttribute{}}.api(),
				Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
					"memory": {Value: resource.MustParse([]string{"1Gi", huge}[i%2])},
				},
			})
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for expression, want := range expressions {
					verdict, err := expression.Satisfied(context.Background(), devices, cel.NewBudget(1_000_000))
					if verdict != want || (err == nil) != want {
						t.Errorf("got %v, %v", verdict, err)
					}
				}
			})
		}
		group.Wait()
	}
}

func TestValue(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	expression, err := environment.CompileInt(t.Context(), "devices.map(d, d.variables.index).sum()", v1alpha1.Variable{Name: "index", Expression: "device.attributes['" + driver + "'].index"})
	require.NoError(t, err)
	require.Equal(t, "dyn", expression.OutputType(), "attributes may be of any type")
	devices := []*device.Device{device.New(driver, &resourceapi.Device{Attributes: attributes{"index": 2}.api()}), device.New(driver, &resourceapi.Device{Attributes: attributes{"index": 5}.api()})}
	value, err := expression.Value(t.Context(), devices, cel.NewBudget(1000))
	require.NoError(t, err)
	require.Equal(t, int64(7), value)
	_, err = expression.Value(t.Context(), devices, cel.NewBudget(0))
	require.ErrorContains(t, err, "budget")
	_, err = environment.CompileInt(t.Context(), "devices.size() > 1")
	require.ErrorContains(t, err, "must return int")
}
