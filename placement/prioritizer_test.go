// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement"
)

// exactly is a spec with the mode Exact and "type name weight" configurations.
func exactly(configurations ...string) string {
	return policy("Exact", configurations...)
}

func policy(mode string, configurations ...string) string {
	spec := "prioritizerPolicy:\n  mode: " + mode + "\n  configurations:\n"
	for _, c := range configurations {
		var name string
		var weight int
		if _, err := fmt.Sscanf(c, "%s %d", &name, &weight); err != nil {
			panic(err)
		}
		spec += fmt.Sprintf("  - weight: %d\n    scoreCoordinate: {type: BuiltIn, builtIn: %s}\n", weight, name)
	}
	return spec
}

// addOn is a configuration to append.
func addOn(resource, score string, weight int) string {
	return fmt.Sprintf("  - weight: %d\n    scoreCoordinate: {type: AddOn, addOn: {resourceName: %s, scoreName: %s}}\n", weight, resource, score)
}

func TestPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want string
	}{
		"default":                      {``, "Balance*1 Steady*1 "},
		"Additive":                     {policy("Additive"), "Balance*1 Steady*1 "},
		"Additive, overridden":         {policy("Additive", "Steady 3", "ResourceAllocatableCPU -2"), "Balance*1 Steady*3 ResourceAllocatableCPU*-2 "},
		"Additive, disabled":           {policy("Additive", "Steady 0", "Balance 0"), ""},
		"no mode is Additive":          {policy(`""`, "Balance 10"), "Steady*1 Balance*10 "},
		"Exact without configurations": {exactly(), ""},
		"Exact":                        {exactly("ResourceAllocatableMemory 1", "Steady -10") + addOn("r", "s", 4), "ResourceAllocatableMemory*1 Steady*-10 AddOn/r/s*4 "},
		"weight 0 disables":            {exactly("Steady 0") + addOn("r", "s", 0), ""},
		"scores of one resource":       {exactly() + addOn("r", "s", 1) + addOn("r", "t", 2), "AddOn/r/s*1 AddOn/r/t*2 "},
	} {
		t.Run(name, func(t *testing.T) {
			result := schedule(t, placed(t, test.spec), newHub(several("b", "a")...))
			got := ""
			for _, p := range result.Prioritizers {
				got += fmt.Sprintf("%s*%d ", p.Name, p.Weight)
			}
			require.Equal(t, test.want, got)
			require.Equal(t, []string{"a", "b"}, ranked(result), "names order what is equal")
		})
	}
}

func TestBadPolicies(t *testing.T) {
	const path = "Prioritizer:spec.prioritizerPolicy."
	for name, test := range map[string]struct{ spec, message string }{
		"mode":               {policy("Sometimes"), path + "mode: incorrect prioritizer policy mode: Sometimes; use Additive or Exact"},
		"unknown":            {exactly("Luck 1"), path + "configurations[0].scoreCoordinate.builtIn: incorrect builtin prioritizer: Luck; use one of Balance, "},
		"Spread":             {exactly("Spread 1"), "incorrect builtin prioritizer: Spread; use one of Balance, ResourceAllocatableCPU, ResourceAllocatableMemory, Steady; to spread decisions, use spec.spreadPolicy"},
		"no coordinate":      {`prioritizerPolicy: {configurations: [{weight: 1}]}`, path + "configurations[0].scoreCoordinate: scoreCoordinate should not be empty"},
		"no type is AddOn":   {`prioritizerPolicy: {configurations: [{weight: 1, scoreCoordinate: {builtIn: Steady}}]}`, "scoreCoordinate.addOn: addOn should not be empty"},
		"AddOn without name": {`prioritizerPolicy: {configurations: [{weight: 1, scoreCoordinate: {type: AddOn}}]}`, "scoreCoordinate.addOn: addOn should not be empty"},
		"weight too large":   {exactly("Steady 11"), path + "configurations[0].weight: the weight 11 must be from -10 to 10"},
		"weight too small":   {exactly("Steady 1", "Balance -11"), path + "configurations[1].weight: the weight -11 must be from -10 to 10"},
		"built-in twice":     {exactly("Steady 1", "Steady 1"), path + "configurations[1]: Steady is configured by spec.prioritizerPolicy.configurations[0] already; remove one of them"},
		"add-on twice":       {exactly() + addOn("r", "s", 1) + addOn("r", "s", 2), path + "configurations[1]: AddOn/r/s is configured by"},
	} {
		t.Run(name, func(t *testing.T) {
			requireMisconfigured(t, schedule(t, placed(t, test.spec), newHub(several("a")...)), test.message)
		})
	}
}

// TestWeightZeroDisablesWhateverItIs, as in OCM.
func TestWeightZeroDisablesWhateverItIs(t *testing.T) {
	for name, spec := range map[string]string{
		"unknown":            exactly("Luck 0", "Steady 1"),
		"AddOn without name": `prioritizerPolicy: {mode: Exact, configurations: [{weight: 0, scoreCoordinate: {type: AddOn}}, {weight: 1, scoreCoordinate: {type: BuiltIn, builtIn: Steady}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			result := schedule(t, placed(t, spec), newHub(several("a")...))
			require.Empty(t, result.Misconfigurations)
			require.Len(t, result.Prioritizers, 1)
			require.Equal(t, placement.Steady, result.Prioritizers[0].Name)
		})
	}
	requireMisconfigured(t, schedule(t, placed(t, `prioritizerPolicy: {configurations: [{weight: 0}]}`), newHub(several("a")...)), "scoreCoordinate should not be empty")
}

func TestSteady(t *testing.T) {
	h := newHub(several("a", "b", "c")...)
	h.decided("ns", "p", "b")
	h.decided("ns", "other", "c")
	h.decided("elsewhere", "p", "a")
	result := schedule(t, placed(t, exactly("Steady 1")), h)
	require.Equal(t, map[string]int64{"a": 0, "b": 100, "c": 0}, scoresOf(t, result, placement.Steady))
	require.Equal(t, []string{"b", "a", "c"}, ranked(result))
}

func TestBalance(t *testing.T) {
	h := newHub(several("a", "b", "c", "d")...)
	h.decided("ns", "p", "a", "a2") // its own does not count
	h.decided("ns", "one", "b", "c", "d")
	h.decided("elsewhere", "p", "c", "d")
	h.decided("elsewhere", "two", "d")
	result := schedule(t, placed(t, exactly("Balance 1")), h)
	require.Equal(t, map[string]int64{"a": 100, "b": 32, "c": -32, "d": -100}, scoresOf(t, result, placement.Balance))

	t.Run("most is that of any cluster", func(t *testing.T) {
		h.clusters = h.clusters[:2]
		result := schedule(t, placed(t, exactly("Balance 1")), h)
		require.Equal(t, map[string]int64{"a": 100, "b": 32}, scoresOf(t, result, placement.Balance))
	})
	t.Run("decisions that change count as they are", func(t *testing.T) {
		h.decided("elsewhere", "p", "b")
		h.decisions.Delete("elsewhere", "two-decision-1")
		h.decisions.Delete("elsewhere", "never-there")
		result := schedule(t, placed(t, exactly("Balance 1")), h)
		require.Equal(t, map[string]int64{"a": 100, "b": -100}, scoresOf(t, result, placement.Balance))
	})
	t.Run("no decisions", func(t *testing.T) {
		h.decisions = nil
		require.Equal(t, map[string]int64{"a": 100, "b": 100}, scoresOf(t, schedule(t, placed(t, exactly("Balance 1")), h), placement.Balance))
	})
}

func TestAllocatable(t *testing.T) {
	for name, resource := range map[string]string{placement.ResourceAllocatableCPU: "cpu", placement.ResourceAllocatableMemory: "memory"} {
		t.Run(name, func(t *testing.T) {
			h := newHub(several("a", "b", "c", "d", "e")...)
			for i, amount := range []string{"1", "2", "4"} {
				if resource == "cpu" {
					sized(h.clusters[i], "cpu", amount)
				} else {
					sized(h.clusters[i], "memory", amount+"Gi")
				}
			}
			sized(h.clusters[3], map[string]clusterv1.ResourceName{"cpu": "memory", "memory": "cpu"}[resource], "100")
			sized(h.clusters[4], clusterv1.ResourceName(resource), "1000Ti")
			delete(h.clusters[4].Status.Capacity, clusterv1.ResourceName(resource))
			result := schedule(t, placed(t, exactly(name+" 1")), h)
			require.Equal(t, map[string]int64{"a": -100, "b": -33, "c": 100, "d": 0, "e": 0}, scoresOf(t, result, name))
			require.Equal(t, []string{"c", "d", "e", "b", "a"}, ranked(result))

			h.clusters = h.clusters[1:2]
			require.Equal(t, map[string]int64{"b": 100}, scoresOf(t, schedule(t, placed(t, exactly(name+" 1")), h), name), "least and most are equal")
		})
	}
}

func TestAllocatableComparesFilteredClustersOnly(t *testing.T) {
	h := newHub(sized(managed("a"), "cpu", "1"), sized(managed("b"), "cpu", "2"), tainting(sized(managed("c"), "cpu", "100"), "x", "NoSelect"))
	require.Equal(t, map[string]int64{"a": -100, "b": 100}, scoresOf(t, schedule(t, placed(t, exactly("ResourceAllocatableCPU 1")), h), "ResourceAllocatableCPU"))
}

func TestAddOnScores(t *testing.T) {
	h := newHub(several("a", "b", "c", "d", "e", "f", "g", "h", "i")...)
	h.score("a", "r", map[string]int32{"s": 80, "other": 3})
	h.score("b", "r", map[string]int32{"other": 3})
	h.score("d", "r", map[string]int32{"s": 5000})
	h.score("e", "r", map[string]int32{"s": -5000})
	h.score("f", "r", map[string]int32{"s": 7}).Status.ValidUntil = &metav1.Time{Time: now.Add(time.Minute)}
	h.score("g", "r", map[string]int32{"s": 9}).Status.ValidUntil = &metav1.Time{Time: now.Add(-time.Second)}
	h.score("h", "r", map[string]int32{"s": 9}).Status.ValidUntil = &metav1.Time{Time: now}
	twice := h.score("i", "r", map[string]int32{"s": 1, "t": 2})
	twice.Status.Scores[1].Name = "s"
	result := schedule(t, placed(t, exactly()+addOn("r", "s", -2)), h)
	want := map[string]int64{"a": 80, "b": 0, "c": 0, "d": 100, "e": -100, "f": 7, "g": 0, "h": 9, "i": 2}
	require.Equal(t, want, scoresOf(t, result, "AddOn/r/s"))
	require.Equal(t, int64(-160), totals(result)["a"])
	require.Equal(t, "e", ranked(result)[0], "a negative weight reverses")
	require.Equal(t, []placement.Warning{
		{Reason: placement.ReasonScoreExpired, Plugin: "AddOn/r/s", Message: "AddOnPlacementScores g/r expired; they count as 0"},
		{Reason: placement.ReasonScoreOutOfRange, Plugin: "AddOn/r/s", Message: "AddOnPlacementScores d/r (5000), e/r (-5000) are not from -100 to 100; they count as the nearest of these"},
	}, result.Warnings)
	require.Equal(t, now.Add(time.Nanosecond), result.Requeue, "the score of h ends first")
	require.True(t, result.Reads.Has("r"))
	require.False(t, result.Reads.Has("q"))
}

func TestWarningsNameTheFirstFew(t *testing.T) {
	h := newHub(several("a", "b", "c", "d", "e")...)
	for _, c := range h.clusters {
		h.score(c.Name, "r", map[string]int32{"s": 101})
	}
	result := schedule(t, placed(t, exactly()+addOn("r", "s", 1)), h)
	require.Len(t, result.Warnings, 1)
	require.Contains(t, result.Warnings[0].Message, "AddOnPlacementScores a/r (101), b/r (101), c/r (101) and 2 more are not")
}

func TestTotals(t *testing.T) {
	h := newHub(several("a", "b")...)
	h.decided("ns", "p", "b")
	h.score("a", "r", map[string]int32{"s": 70})
	result := schedule(t, placed(t, policy("Additive", "Steady 3")+addOn("r", "s", 5)), h)
	require.Equal(t, map[string]int64{"a": 100 + 5*70, "b": 100 + 3*100}, totals(result))
	require.Equal(t, "a:450 b:400 ", result.ScoreSummary())
}

func TestTieBreak(t *testing.T) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("c%02d", i))
	}
	h, object := newHub(several(names...)...), placed(t, ``)
	require.Equal(t, names, ranked(schedule(t, object, h)))
	object.Annotations = map[string]string{placement.TieBreakAnnotation: placement.TieBreakName}
	require.Equal(t, names, ranked(schedule(t, object, h)))

	object.Annotations[placement.TieBreakAnnotation] = placement.TieBreakRandom
	first := ranked(schedule(t, object, h))
	require.ElementsMatch(t, names, first)
	require.NotEqual(t, names, first)
	require.Equal(t, first, ranked(schedule(t, object, h)), "always the same for one Placement")
	object.UID = "q"
	require.NotEqual(t, first, ranked(schedule(t, object, h)), "another for another one")

	h.decided("ns", "p", "c49")
	require.Equal(t, "c49", ranked(schedule(t, object, h))[0], "scores come first")

	object.Annotations[placement.TieBreakAnnotation] = "dice"
	requireMisconfigured(t, schedule(t, object, h), `Selection:metadata.annotations[celset.dev/tie-break]: unknown order "dice"; use name or random`)
}
