// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package incremental_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/incremental"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// An oracle enumerates all complete sets that contain the current devices.
type oracle struct {
	expression *device.Expression
	devices    []*device.Device
	shared     []bool
	requests   []incremental.Request
	members    [][]int
}

// mayBeSatisfied reports whether some complete set satisfies the constraint or makes its expression fail.
func (o *oracle) mayBeSatisfied() bool {
	for r := range o.requests {
		if len(o.members[r]) == o.requests[r].Count {
			continue
		}
		for i := range o.devices {
			if o.mayTake(r, i) {
				o.members[r] = append(o.members[r], i)
				is := o.mayBeSatisfied()
				o.members[r] = o.members[r][:len(o.members[r])-1]
				if is {
					return true
				}
			}
		}
		return false
	}
	var set []*device.Device
	for _, i := range slices.Concat(o.members...) {
		set = append(set, o.devices[i])
	}
	satisfied, err := o.expression.Satisfied(context.Background(), set, nil)
	return satisfied || err != nil
}

func (o *oracle) mayTake(r, i int) bool {
	for other, members := range o.members {
		if slices.Contains(members, i) && (other == r || !o.shared[i]) {
			return false
		}
	}
	return len(o.members[r]) < o.requests[r].Count
}

func (o *oracle) isComplete() bool {
	for r := range o.requests {
		if len(o.members[r]) < o.requests[r].Count {
			return false
		}
	}
	return true
}

// TestAnyOrder adds and removes devices in random order. Add may return false only if no complete set with the devices
// satisfies the constraint. For a complete set, Add must return the verdict.
func TestAnyOrder(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	refused, complete := 0, 0
	cases.CheckN(t, cases.Of(400, 10_000), func(t *rapid.T) {
		text := randomexpr.Condition(t, attributes)
		expression, err := environment.Compile(t.Context(), text)
		if err != nil {
			return
		}
		devices := drawDevices(t, rapid.IntRange(2, 5).Draw(t, "devices"))
		o := &oracle{expression: expression, shared: make([]bool, len(devices))}
		sharing := rapid.IntRange(0, 2).Draw(t, "sharing") == 0
		for i, d := range devices {
			if o.shared[i] = sharing && rapid.Bool().Draw(t, "shared"); o.shared[i] {
				d.AllowMultipleAllocations = ptr.To(true)
			}
			o.devices = append(o.devices, device.New(d.Driver, d.Device))
		}
		names := []string{"one", "two"}[:rapid.IntRange(1, 2).Draw(t, "requests")]
		c, err := constraintOf(t, text, names...)
		require.NoError(t, err)
		for _, name := range names {
			o.requests = append(o.requests, incremental.Request{Name: name, Count: rapid.IntRange(0, 2).Draw(t, "count")})
		}
		o.members = make([][]int, len(o.requests))
		set := c.Over(t.Context(), devices, o.requests, cel.NewBudget(manyUnits))
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			r, i := rapid.IntRange(0, len(o.requests)-1).Draw(t, "request"), rapid.IntRange(0, len(devices)-1).Draw(t, "device")
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				set.Remove(o.requests[r].Name, i)
				o.members[r] = slices.DeleteFunc(o.members[r], func(j int) bool { return i == j })
				continue
			}
			mayTake := o.mayTake(r, i)
			added := set.Add(o.requests[r].Name, i)
			if !mayTake {
				require.False(t, added)
				continue
			}
			o.members[r] = append(o.members[r], i)
			switch {
			case set.Err() != nil:
				return
			case o.isComplete():
				complete++
				require.Equal(t, o.mayBeSatisfied(), added, text)
			case !added:
				refused++
				require.False(t, o.mayBeSatisfied(), text)
			}
			if !added {
				o.members[r] = o.members[r][:len(o.members[r])-1]
			}
		}
	})
	t.Logf("%d refused, %d complete", refused, complete)
	require.Greater(t, refused, 50)
	require.Greater(t, complete, 50)
}
