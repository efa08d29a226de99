// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/policy"
)

// Where pruning has to take something else into account. The answer is that of the
// exhaustive search in each case; cut tells whether anything was cut.
func TestPruningBesideOtherThings(t *testing.T) {
	const far = indices + ".min() > 3"
	six := []*sliceBuilder{slice("1", ring(6)...)}
	eight := []*sliceBuilder{slice("1", ring(8)...)}
	colors := func(names ...string) []*sliceBuilder {
		devices := ring(len(names))
		for i, name := range names {
			if name != "" {
				devices[i].Attributes["color"] = resourceapi.DeviceAttribute{StringValue: &name}
			}
		}
		return []*sliceBuilder{slice("1", devices...)}
	}
	memory := func(amounts ...string) []*sliceBuilder {
		var devices []resourceapi.Device
		for i, amount := range amounts {
			d := ring(i + 1)[i]
			consuming("gpu", map[string]string{"memory": amount})(&d)
			devices = append(devices, d)
		}
		return partitioned("4Gi", devices...)
	}
	sharedRing := func(n int) []*sliceBuilder {
		devices := ring(n)
		for i := range devices {
			shared(&devices[i])
			policy.Having("memory", "2Gi", policy.Default("1Gi"))(&devices[i])
		}
		return []*sliceBuilder{slice("1", devices...)}
	}
	lastShared := func(n int) []*sliceBuilder {
		devices := ring(n)
		shared(&devices[n-1])
		return []*sliceBuilder{slice("1", devices...)}
	}
	for name, test := range map[string]struct {
		scenario
		cut  bool
		want []string
		err  string
	}{
		"nothing else": {
			scenario{slices: eight, claims: []*claimBuilder{claim("c").want("x", 2).cel("far").define("far", far)}},
			true, []string{"x=mla-4", "x=mla-5"}, "",
		},
		"two requests share devices": {
			scenario{slices: eight, claims: []*claimBuilder{claim("c").want("x", 2, index+" < 7").want("y", 2, index+" > 2").cel("far").define("far", far)}},
			true, []string{"x=mla-4", "x=mla-5", "y=mla-6", "y=mla-7"}, "",
		},
		"two requests want the same": {
			scenario{slices: eight, inUse: []string{"mla-5"}, claims: []*claimBuilder{claim("c").want("x", 2).want("y", 2).cel("far").define("far", far)}},
			true, nil, "",
		},
		"first leaves too few": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 1, index+" > 3").want("y", 1, index+" == 4").cel("far").define("far", far)}},
			false, []string{"x=mla-5", "y=mla-4"}, "",
		},
		"an uncovered request between takes some": {
			scenario{slices: eight, claims: []*claimBuilder{claim("c").want("x", 1).want("z", 2, index+" > 3").want("y", 1).cel("far", "x", "y").define("far", far)}},
			true, []string{"x=mla-4", "z=mla-5", "z=mla-6", "y=mla-7"}, "",
		},
		"a claim before takes some": {
			scenario{slices: eight, claims: []*claimBuilder{claim("b").want("z", 2, index+" > 3"), claim("c").want("x", 2).cel("far").define("far", far)}},
			true, []string{"z=mla-4", "z=mla-5", "x=mla-6", "x=mla-7"}, "",
		},
		"counters": {
			scenario{slices: memory("1Gi", "1Gi", "3Gi", "2Gi", "3Gi", "1Gi"), claims: []*claimBuilder{claim("c").want("x", 2).cel("late").define("late", indices+".min() > 1")}},
			true, []string{"x=mla-2", "x=mla-5"}, "",
		},
		"counters that don't suffice": {
			scenario{slices: memory("1Gi", "1Gi", "3Gi", "3Gi", "3Gi"), claims: []*claimBuilder{claim("c").want("x", 2).cel("late").define("late", indices+".min() > 1")}},
			true, nil, "",
		},
		"shares of one request": {
			scenario{slices: sharedRing(6), shares: []share{{device: "mla-4", consumed: map[string]string{"memory": "2Gi"}}}, claims: []*claimBuilder{claim("c").want("x", 1).cel("far").define("far", far)}},
			true, []string{"x=mla-5"}, "",
		},
		"shares of two requests": {
			scenario{slices: sharedRing(6), claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1).cel("far").define("far", far)}},
			false, []string{"x=mla-4", "y=mla-4"}, "",
		},
		"shares for one of two requests": {
			scenario{slices: lastShared(6), claims: []*claimBuilder{claim("c").want("x", 1, index+" < 5").want("y", 1, index+" > 3").cel("far").define("far", far)}},
			true, []string{"x=mla-4", "y=mla-5"}, "",
		},
		"shares for a request that is not covered": {
			scenario{slices: lastShared(8), claims: []*claimBuilder{claim("c").want("z", 1, index+" == 7").want("x", 1, index+" < 6").want("y", 1, index+" < 7").cel("far", "x", "y").define("far", far)}},
			true, []string{"z=mla-7", "x=mla-4", "y=mla-5"}, "",
		},
		"shares of a device that both may have": {
			scenario{slices: lastShared(6), claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1).cel("last").define("last", indices+".min() > 4")}},
			false, []string{"x=mla-5", "y=mla-5"}, "",
		},
		"capacity": {
			scenario{
				slices: []*sliceBuilder{slice("1", newDevice("a", attrs{"index": 4}, policy.Having("memory", "1Gi", nil)), newDevice("b", attrs{"index": 1}), newDevice("c", attrs{"index": 5}, policy.Having("memory", "8Gi", nil)))},
				claims: []*claimBuilder{claim("c").want("x", 1).capacity("memory", "4Gi").cel("far").define("far", far)},
			},
			false, []string{"x=c"}, "",
		},
		"matchAttribute before it": {
			scenario{slices: colors("red", "red", "blue", "red", "blue", "red", "blue"), claims: []*claimBuilder{claim("c").want("x", 2).match(color).cel("far").define("far", far)}},
			true, []string{"x=mla-4", "x=mla-6"}, "",
		},
		"matchAttribute after it": {
			scenario{slices: colors("red", "red", "blue", "red", "blue", "red", "blue"), claims: []*claimBuilder{claim("c").want("x", 2).cel("far").define("far", far).match(color)}},
			true, []string{"x=mla-4", "x=mla-6"}, "",
		},
		"distinctAttribute before it": {
			scenario{slices: colors("red", "red", "blue", "red", "blue", "blue", "red"), claims: []*claimBuilder{claim("c").want("x", 2).distinct(color).cel("far").define("far", far)}},
			true, []string{"x=mla-4", "x=mla-6"}, "",
		},
		"all": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").wantAll("x", index+" != 2").cel("row").define("row", inARow)}},
			true, nil, "",
		},
		"all, and it is": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").wantAll("x", index+" > 2").cel("row").define("row", inARow)}},
			false, []string{"x=mla-3", "x=mla-4", "x=mla-5"}, "",
		},
		"all beside a choice": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("y", 1).wantAll("x", index+" > 3").cel("row").define("row", inARow)}},
			true, []string{"y=mla-3", "x=mla-4", "x=mla-5"}, "",
		},
		"all, with an attribute constraint that would fail": {
			scenario{slices: colors("red", "blue", "red"), claims: []*claimBuilder{claim("c").wantAll("x").match(color).cel("never").define("never", "devices.exists(d, false)")}},
			false, nil, "",
		},
		"administrators": {
			scenario{slices: six, inUse: []string{"mla-4", "mla-5"}, claims: []*claimBuilder{claim("c").want("x", 2).admin().cel("far").define("far", far)}},
			true, []string{"x=mla-4", "x=mla-5"}, "",
		},
		"administrators in two requests": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 1).admin().want("y", 1).admin().cel("far").define("far", far)}},
			true, []string{"x=mla-4", "y=mla-5"}, "",
		},
		"another constraint may fail": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 2).cel("far").cel("fails").define("far", far).define("fails", "1 / ("+indices+".min() - 4) < 1")}},
			true, nil, "division by zero",
		},
		"another constraint fails before": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 2).cel("fails").cel("far").define("far", far).define("fails", "1 / "+indices+".min() < 1")}},
			false, nil, "devices [mla.example.com/pool-1/mla-0, mla.example.com/pool-1/mla-1]: ERROR: <input>:1:3: division by zero",
		},
		"another constraint can't fail": {
			scenario{slices: eight, claims: []*claimBuilder{claim("c").want("x", 2).cel("far").cel("even").define("far", far).define("even", "devices.all(d, d.attributes['mla.example.com'].index % 2 == 0)")}},
			true, []string{"x=mla-4", "x=mla-6"}, "",
		},
		"another constraint is not read": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 2).cel("far").cel("unread").define("far", far).define("unread", indices+".slice(0, 1) == [4]")}},
			true, []string{"x=mla-4", "x=mla-5"}, "",
		},
		"another constraint of another claim": {
			scenario{slices: eight, claims: []*claimBuilder{
				claim("c").want("x", 2).cel("far").define("far", far),
				claim("d").want("y", 1).cel("unread").define("unread", indices+".slice(0, 1) == [7]"),
			}},
			true, []string{"x=mla-4", "x=mla-5", "y=mla-7"}, "",
		},
		"selector fails where the search comes": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 2, "1 / ("+index+" - 2) < 9").cel("far").define("far", far)}},
			false, nil, "CEL runtime error: division by zero",
		},
		"selector fails where it does not": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 2, "1 / ("+index+" - 5) < 9").cel("low").define("low", indices+".sum() == 3")}},
			false, []string{"x=mla-0", "x=mla-3"}, "",
		},
		"selector fails for a device in use": {
			scenario{slices: eight, inUse: []string{"mla-2"}, claims: []*claimBuilder{claim("c").want("x", 2, "1 / ("+index+" - 2) < 9").cel("far").define("far", far)}},
			true, []string{"x=mla-4", "x=mla-5"}, "",
		},
		"derived attribute": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 2).derive(color, "'red'").match(color).cel("far").define("far", far)}},
			false, []string{"x=mla-4", "x=mla-5"}, "",
		},
		"alternatives": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").firstAvailable("x", sub("three", 3), sub("two", 2)).cel("far").define("far", far)}},
			true, []string{"x/two=mla-4", "x/two=mla-5"}, "",
		},
		"alternatives before another request": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").firstAvailable("x", sub("three", 3), sub("one", 1)).want("y", 1).cel("far").define("far", far)}},
			true, []string{"x/one=mla-4", "y=mla-5"}, "",
		},
		"alternatives after another request": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("y", 1).firstAvailable("x", sub("three", 3), sub("one", 1)).cel("far").define("far", far)}},
			false, []string{"y=mla-4", "x/one=mla-5"}, "",
		},
		"alternatives of which one is not covered": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").firstAvailable("x", sub("three", 3), sub("other", 9), sub("two", 2)).cel("far", "x/three", "x/two").define("far", far)}},
			true, []string{"x/two=mla-4", "x/two=mla-5"}, "",
		},
		"behind one that can't be read": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 2).cel("named").cel("far").define("far", far).
				define("named", "devices.map(d, string(d.attributes['mla.example.com'].index)).join(',') != '0,1'")}},
			false, []string{"x=mla-4", "x=mla-5"}, "",
		},
		"one alternative": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").firstAvailable("x", sub("two", 2)).cel("far").define("far", far)}},
			true, []string{"x/two=mla-4", "x/two=mla-5"}, "",
		},
		"fails for some": {
			scenario{slices: colors("a", "", "b", "b"), claims: []*claimBuilder{claim("c").want("x", 2).cel("b").define("b", "devices.all(d, d.attributes['mla.example.com'].color == 'b')")}},
			true, nil, "devices [mla.example.com/pool-1/mla-1, mla.example.com/pool-1/mla-2]: ERROR",
		},
		"fails for some that the search comes to": {
			scenario{slices: colors("b", "", "b", "a"), claims: []*claimBuilder{claim("c").want("x", 2).cel("b").define("b", "devices.all(d, d.attributes['mla.example.com'].color == 'b')")}},
			true, nil, "no such key: color",
		},
		"more than the claim may have": {
			scenario{slices: six, claims: []*claimBuilder{claim("c").want("x", 2).firstAvailable("y", sub("many", 31), sub("one", 1)).cel("far", "x").define("far", far)}},
			false, []string{"x=mla-4", "x=mla-5", "y/one=mla-0"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, all := test.answer(t, WithExhaustiveSearch())
			got, stats := test.answer(t)
			require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
			require.Equal(t, test.want, devicesOf(got.Results))
			if test.err != "" {
				require.Contains(t, got.Err, test.err)
			}
			require.Equal(t, test.cut, stats.Cuts > 0, "%+v", stats)
			require.LessOrEqual(t, stats.Evaluations, all.Evaluations)
		})
	}
}

// Sets of devices are words of 64 bits: what is before and after a device is so across
// words too.
func TestPruningOfManyDevices(t *testing.T) {
	for _, n := range []int{63, 64, 65, 70, 130} {
		for name, c := range map[string]*claimBuilder{
			"last two":     claim("c").want("x", 2).cel("far").define("far", fmt.Sprintf("%s.min() >= %d", indices, n-2)),
			"two requests": claim("c").want("x", 1, index+" > 60").want("y", 2).cel("far").define("far", fmt.Sprintf("%s.sum() == %d && %s.min() > 0", indices, n+2, indices)),
			"a row":        claim("c").want("x", 3).cel("row").define("row", inARow+fmt.Sprintf(" && devices.exists(d, d.attributes['mla.example.com'].index == %d)", n-2)),
			"far apart":    claim("c").want("x", 2).cel("far").define("far", fmt.Sprintf("%s == %d", width("index"), n-2)),
			"never":        claim("c").want("x", 2).cel("far").define("far", fmt.Sprintf("%s.min() >= %d", indices, n-1)),
		} {
			t.Run(fmt.Sprintf("%d, %s", n, name), func(t *testing.T) {
				s := scenario{slices: []*sliceBuilder{slice("1", ring(n)...)}, inUse: []string{"mla-0", "mla-62"}, claims: []*claimBuilder{c}}
				if name != "a row" { // as many sets as there are are too many
					want, _ := s.answer(t, WithExhaustiveSearch(), WithCostBudget(math.MaxUint64), WithStepBudget(math.MaxInt64))
					got, _ := s.answer(t)
					require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
					return
				}
				got, stats := s.answer(t)
				require.Less(t, stats.Steps, int64(20))
				if n == 64 || n == 65 {
					require.Empty(t, got.Results, "mla-62 is in use")
					return
				}
				require.Equal(t, []string{fmt.Sprintf("x=mla-%d", n-4), fmt.Sprintf("x=mla-%d", n-3), fmt.Sprintf("x=mla-%d", n-2)}, devicesOf(got.Results))
			})
		}
	}
}
