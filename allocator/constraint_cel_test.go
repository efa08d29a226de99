// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

func TestCELConstraint(t *testing.T) {
	four := func() *claimBuilder { return claim("c").want("mla", 4).cel("shape") }
	for name, test := range map[string]struct {
		devices []resourceapi.Device
		inUse   []string
		claim   *claimBuilder
		want    []string
	}{
		"ring": {
			ring(6), nil, four().define("shape", inARow),
			[]string{"mla=mla-0", "mla=mla-1", "mla=mla-2", "mla=mla-3"},
		},
		"ring with holes": {
			ring(8), []string{"mla-1", "mla-6"}, four().define("shape", inARow),
			[]string{"mla=mla-2", "mla=mla-3", "mla=mla-4", "mla=mla-5"},
		},
		"ring in pieces": {ring(8), []string{"mla-3", "mla-4"}, four().define("shape", inARow), nil},
		"grid": {
			mesh(3, 3), []string{"mla-00"}, four().define("shape", neighbors),
			[]string{"mla=mla-01", "mla=mla-02", "mla=mla-11", "mla=mla-12"},
		},
		"grid with the middle in use": {mesh(3, 3), []string{"mla-11"}, four().define("shape", neighbors), nil},
		"always": {
			ring(4), nil, claim("c").want("mla", 2).cel("shape").define("shape", "true"), []string{"mla=mla-0", "mla=mla-1"},
		},
		"never": {ring(4), nil, claim("c").want("mla", 2).cel("shape").define("shape", "false"), nil},
		"false && error is false": {
			ring(4), nil, claim("c").want("mla", 2).cel("shape").define("shape", "devices[0].attributes['x'].y == 1 && false"), nil,
		},
		// Evaluated in that one order, never over permutations.
		"order of the devices": {
			ring(4), nil, claim("c").want("mla", 2).cel("shape").define("shape", indices+"[0] == 2"), []string{"mla=mla-2", "mla=mla-3"},
		},
		"order that does not occur": {
			ring(4), nil, claim("c").want("mla", 2).cel("shape").define("shape", indices+"[0] > "+indices+"[1]"), nil,
		},
		"several requests": {
			ring(6), nil, claim("c").want("a", 1).want("b", 2).cel("shape").define("shape", indices+".sum() == 10"),
			[]string{"a=mla-1", "b=mla-4", "b=mla-5"},
		},
		"order of the requests": {
			ring(3), nil, claim("c").want("a", 1).want("b", 1).cel("shape").define("shape", indices+" == [2, 0]"),
			[]string{"a=mla-2", "b=mla-0"},
		},
		"not the order of the constraint's requests": {
			ring(3), nil, claim("c").want("a", 1).want("b", 1).cel("shape", "b", "a").define("shape", indices+" == [2, 0]"),
			[]string{"a=mla-2", "b=mla-0"},
		},
		"one of several requests": {
			ring(6), nil, claim("c").want("a", 1).want("b", 2).cel("shape", "b").define("shape", inARow),
			[]string{"a=mla-0", "b=mla-1", "b=mla-2"},
		},
		"earlier request makes room": {
			ring(4), []string{"mla-3"}, claim("c").want("a", 1).want("b", 2).cel("shape", "b").define("shape", indices+".sum() == 1"),
			[]string{"a=mla-2", "b=mla-0", "b=mla-1"},
		},
		"two constraints": {
			ring(8), nil, claim("c").want("mla", 3).cel("row").cel("sum").define("row", inARow).define("sum", indices+".sum() > 9"),
			[]string{"mla=mla-3", "mla=mla-4", "mla=mla-5"},
		},
		"second is not evaluated if the first is false": {
			ring(4), nil, claim("c").want("mla", 2).cel("no").cel("broken").define("no", "false").define("broken", "1 / 0 == 1"), nil,
		},
		"beside matchAttribute": {
			append(ring(4), newDevice("x", attrs{"index": 4, "root": 1}), newDevice("y", attrs{"index": 6, "root": 1}), newDevice("z", attrs{"index": 5, "root": 1})),
			nil, claim("c").want("mla", 2).match(driver+"/root").cel("shape").define("shape", inARow),
			[]string{"mla=x", "mla=z"},
		},
		"all": {
			ring(4), nil, claim("c").wantAll("mla", index+" >= 2").cel("shape").define("shape", inARow), []string{"mla=mla-2", "mla=mla-3"},
		},
		"all, false": {ring(4), nil, claim("c").wantAll("mla", index+" != 2").cel("shape").define("shape", inARow), nil},
		"all and a choice": {
			ring(4), nil, claim("c").want("one", 1).wantAll("rest", index+" == 3").cel("shape").define("shape", inARow),
			[]string{"one=mla-2", "rest=mla-3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: []*sliceBuilder{slice("1", test.devices...)}, inUse: test.inUse, claims: []*claimBuilder{test.claim}}
			s.requireDevices(t, test.want...)
		})
	}
}

// A GPU and a NIC on one PCIe root, of two drivers. Each driver calls the
// attribute by its own name.
func TestCELConstraintOverDrivers(t *testing.T) {
	var gpus, nics []resourceapi.Device
	for i, root := range []int{0, 1, 2} {
		gpus = append(gpus, newDevice(fmt.Sprintf("gpu-%d", i), attrs{"root": root}))
	}
	for i, root := range []int{3, 2, 1} {
		nics = append(nics, newDevice(fmt.Sprintf("nic-%d", i), attrs{"root": root}))
	}
	c := claim("c").want("gpu", 1).class("gpu").want("nic", 1).class("nic").cel("near").
		define("near", "devices.map(d, d.attributes[d.driver].root).distinct().size() == 1")
	scenario{
		classes: []*resourceapi.DeviceClass{
			classOf("gpu", "device.driver == 'gpu.example.com'"), classOf("nic", "device.driver == 'nic.example.com'"),
		},
		slices: []*sliceBuilder{slice("1", gpus...).driver("gpu.example.com"), slice("2", nics...).driver("nic.example.com")},
		claims: []*claimBuilder{c},
	}.requireDevices(t, "gpu=gpu-1", "nic=nic-2")
}

// With admin access a device may stand in two claims: it has one identity.
func TestCELConstraintAndAdminAccess(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		claims: []*claimBuilder{
			claim("a").want("x", 1), claim("b").want("y", 2).admin().cel("shape").define("shape", indices+".sum() == 1"),
		},
	}.requireDevices(t, "x=mla-0", "y=mla-0", "y=mla-1")
}

func TestCELConstraintErrors(t *testing.T) {
	const where = "claim default/c, constraint shape, node node-1, devices [mla.example.com/pool-1/mla-0, mla.example.com/pool-1/mla-1]: "
	define := func(expression string) *claimBuilder {
		return claim("c").want("mla", 2).cel("shape").define("shape", expression)
	}
	for name, test := range map[string]struct {
		claim   *claimBuilder
		message string
		reason  cel.Reason
		opts    []Option
	}{
		"missing attribute": {
			claim: define("devices.all(d,\n  d.attributes['mla.example.com'].color == 'red')"), reason: cel.ReasonRuntime,
			message: where + "ERROR: <input>:2:34: no such key: color. consider using CEL optional chaining",
		},
		"not a bool": {claim: define("devices.size() == 2 ? dyn(1) : dyn(true)"), reason: cel.ReasonType, message: where + "ERROR: <input>:1:1: the expression must return bool, it returned int"},
		"all": {
			claim: claim("c").wantAll("mla").cel("shape").define("shape", "1 / 0 == 1"), reason: cel.ReasonRuntime,
			message: where + "ERROR: <input>:1:3: division by zero",
		},
		"cost limit": {
			claim: define("devices.all(a, devices.all(b, a == b || a != b))"), reason: cel.ReasonCostLimit,
			message: where + "ERROR: <input>:1:1: one evaluation exceeds the cost limit of 10",
			opts:    []Option{WithEnvironment(environmentWith(t, cel.Config{CostLimit: 10}))},
		},
		"budget": {
			claim: define("devices.slice(0, 2).size() == 2"), reason: cel.ReasonBudget,
			message: "claim default/c, constraint shape, node node-1: the evaluations together exceed the cost budget of 1 CEL cost units, with 1 of 1 sets of devices left undecided: ",
			opts:    []Option{WithCostBudget(1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: []*sliceBuilder{slice("1", ring(2)...)}, claims: []*claimBuilder{test.claim}, opts: test.opts}
			s.requireError(t, test.message)
			_, err := s.allocate(t)
			var failure *cel.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, test.reason, failure.Reason)
		})
	}
}

func environmentWith(t *testing.T, config cel.Config) *device.Environment {
	t.Helper()
	environment, err := device.NewEnvironment(config)
	require.NoError(t, err)
	return environment
}

// The budget is for all evaluations of one Allocate call, and for one only.
func TestCostBudgetIsPerCall(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(4)...)},
		claims: []*claimBuilder{claim("c").want("mla", 2).cel("shape").define("shape", unread)},
	}
	search := s.search(t)
	found, err := search.run()
	require.NoError(t, err)
	require.False(t, found)
	cost := search.work.cost.Spent() // of 6 evaluations
	require.NotZero(t, cost)

	s.opts = []Option{WithCostBudget(cost)}
	a := s.allocator(t)
	for range 3 {
		_, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
		require.NoError(t, err)
	}
	s.opts = []Option{WithCostBudget(cost - 1)}
	s.requireError(t, fmt.Sprintf("the evaluations together exceed the cost budget of %d CEL cost units, with 1 of 6 sets of devices left undecided: ", cost-1))
}

// An error aborts the allocation even if a later set would do, a set that is
// never reached does no harm.
func TestCELConstraintIsLazy(t *testing.T) {
	devices := append(ring(2), newDevice("broken", nil), newDevice("last", attrs{"index": 2}))
	s := scenario{slices: []*sliceBuilder{slice("1", devices...)}}
	s.claims = []*claimBuilder{claim("c").want("mla", 2).cel("shape").define("shape", inARow)}
	s.requireDevices(t, "mla=mla-0", "mla=mla-1")
	s.claims = []*claimBuilder{claim("c").want("mla", 2).cel("shape").define("shape", indices+".sum() == 3")}
	s.requireError(t, "devices [mla.example.com/pool-1/mla-0, mla.example.com/pool-1/broken]")
}

func TestCELConstraintUndo(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		claims: []*claimBuilder{claim("c").want("mla", 2).cel("shape").define("shape", inARow)},
	}.search(t)
	c, devices, r := s.celConstraints[0], s.inventory.Candidates, s.requests[0][0][0]
	satisfied, err := r.decide()
	require.NoError(t, err)
	require.True(t, satisfied)
	for _, step := range []struct {
		device int
		want   bool
	}{{0, true}, {2, false}, {1, true}} {
		added, err := c.Add(&r.Request, devices[step.device])
		require.NoError(t, err)
		require.Equal(t, step.want, added)
	}
	require.Equal(t, []*inventory.Candidate{devices[0], devices[1]}, c.members)
	require.Equal(t, []int64{0, 0, 1, 1}, []int64{c.evaluations, c.rejected, c.accepted, c.proven})
	c.Remove(devices[1])
	c.Remove(devices[0])
	r.undecide(len(r.decides))
	requireEmpty(t, c)
}

// The set is that of the alternatives being tried.
func TestCELConstraintAndAlternatives(t *testing.T) {
	const size = "devices.size()"
	for name, test := range map[string]struct {
		inUse []string
		claim *claimBuilder
		want  []string
	}{
		"first":                  {nil, claim("c").firstAvailable("x", sub("four", 4), sub("two", 2)).cel("row").define("row", inARow), []string{"x/four=mla-0", "x/four=mla-1", "x/four=mla-2", "x/four=mla-3"}},
		"smaller set":            {[]string{"mla-0", "mla-3"}, claim("c").firstAvailable("x", sub("four", 4), sub("two", 2)).cel("row").define("row", inARow), []string{"x/two=mla-1", "x/two=mla-2"}},
		"larger set":             {nil, claim("c").firstAvailable("x", sub("two", 2), sub("three", 3)).cel("three").define("three", size+" == 3"), []string{"x/three=mla-0", "x/three=mla-1", "x/three=mla-2"}},
		"names one, not tried":   {nil, claim("c").firstAvailable("x", sub("two", 2), sub("three", 3)).cel("never", "x/three").define("never", "false"), []string{"x/two=mla-0", "x/two=mla-1"}},
		"names one, tried":       {nil, claim("c").firstAvailable("x", sub("two", 2), sub("three", 3)).cel("never", "x/two").define("never", "false"), []string{"x/three=mla-0", "x/three=mla-1", "x/three=mla-2"}},
		"over requests":          {nil, claim("c").firstAvailable("x", sub("two", 2), sub("one", 1)).want("y", 2).cel("three").define("three", size+" == 3 && "+inARow), []string{"x/one=mla-0", "y=mla-1", "y=mla-2"}},
		"list after the request": {nil, claim("c").want("y", 2).firstAvailable("x", sub("two", 2), sub("one", 1)).cel("three").define("three", size+" == 3 && "+inARow), []string{"y=mla-0", "y=mla-1", "x/one=mla-2"}},
		"two lists":              {nil, claim("c").firstAvailable("x", sub("two", 2), sub("one", 1)).firstAvailable("y", sub("two", 2), sub("one", 1)).cel("two").define("two", size+" == 2"), []string{"x/one=mla-0", "y/one=mla-1"}},
		"all":                    {nil, claim("c").firstAvailable("x", subAll("odd", index+" % 2 == 1"), subAll("low", index+" < 3")).cel("row").define("row", inARow), []string{"x/low=mla-0", "x/low=mla-1", "x/low=mla-2"}},
		"request and alternative": {
			nil, claim("c").want("y", 2).firstAvailable("x", sub("one", 1), sub("two", 2)).cel("sum", "y", "x/two").define("sum", indices+".sum() == 6"),
			[]string{"y=mla-0", "y=mla-1", "x/two=mla-2", "x/two=mla-3"},
		},
		// No device follows that would complete the set.
		"completed by an alternative that is not covered": {
			nil, claim("c").want("y", 2).firstAvailable("x", sub("none", 2, index+" < 0"), sub("one", 1)).cel("sum", "y", "x/none").define("sum", size+" == 2 && "+indices+".sum() == 5"),
			[]string{"y=mla-0", "y=mla-5", "x/one=mla-1"},
		},
		"completed by one that wants nothing": {
			nil, claim("c").want("y", 2).want("x", 0).cel("sum").define("sum", indices+".sum() == 5"), []string{"y=mla-0", "y=mla-5"},
		},
		"first decided, second not satisfied": {
			nil, claim("c").want("y", 1).firstAvailable("x", sub("one", 1), sub("two", 2)).
				cel("any", "y", "x/two").cel("high", "y", "x/two").define("any", "true").define("high", size+" == 1 && "+indices+"[0] == 4"),
			[]string{"y=mla-4", "x/one=mla-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: []*sliceBuilder{slice("1", ring(6)...)}, inUse: test.inUse, claims: []*claimBuilder{test.claim}}
			s.requireDevices(t, test.want...)
			s.opts = []Option{WithExhaustiveSearch()}
			s.requireDevices(t, test.want...)
		})
	}
}

func TestCELConstraintErrorOfAnAlternative(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{slice("1", ring(3)...)},
		claims: []*claimBuilder{
			claim("c").want("y", 1).firstAvailable("x", sub("none", 1, "false"), sub("one", 1)).cel("broken", "y", "x/none").define("broken", "1 / 0 == 1"),
		},
	}.requireError(t, "claim default/c, constraint broken, node node-1, devices [mla.example.com/pool-1/mla-0]: ERROR: <input>:1:3: division by zero")
}

// A device that allows several allocations may stand in the set more than once. It
// has one identity.
func TestCELConstraintAndSharedDevices(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", gpu("a", "2Gi"), gpu("b", "2Gi"))},
		claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1).cel("same").define("same", "devices.size() == 2 && devices[0] == devices[1]")},
	}
	s.requireDevices(t, "x=a", "y=a")
	s.claims = []*claimBuilder{claim("c").want("x", 1).want("y", 1).cel("different").define("different", "devices[0] != devices[1]")}
	s.requireDevices(t, "x=a", "y=b")
	// There is room for one more share of a.
	s.shares = []share{{device: "a", consumed: map[string]string{"memory": "1Gi"}}}
	s.claims[0] = claim("c").want("x", 1).want("y", 1).cel("same").define("same", "devices[0] == devices[1]")
	s.requireDevices(t, "x=b", "y=b")
	s.claims[0] = claim("c").want("x", 1).want("y", 1).want("z", 1).cel("many").define("many", "devices.all(d, d.allowMultipleAllocations) && devices.filter(d, d == devices[0]).size() == 1")
	s.requireDevices(t, "x=a", "y=b", "z=b")
}
