// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

type objects = []*clusterv1beta1.PlacementDecision

// sliced divides clusters into PlacementDecisions with at most length clusters.
func sliced(length int, clusters ...string) objects {
	var result objects
	for i := 0; i < len(clusters); i += length {
		result = append(result, decision("ns", "p", fmt.Sprintf("p-decision-%d", len(result)+1), clusters[i:min(i+length, len(clusters))]...))
	}
	return result
}

// replay applies the steps from former to wanted. After each step it requires that every cluster that stays selected is in an
// object. It returns the steps as text and the objects at the end.
func replay(t require.TestingT, former, wanted objects) (steps []string, end map[string]*clusterv1beta1.PlacementDecision) {
	end = map[string]*clusterv1beta1.PlacementDecision{}
	for _, o := range former {
		end[o.Name] = o
	}
	stays := map[string]bool{}
	there := clustersIn(end)
	for _, o := range wanted {
		for _, d := range o.Status.Decisions {
			stays[d.ClusterName] = there[d.ClusterName]
		}
	}
	for _, step := range placement.Updates(former, wanted) {
		if step.Delete {
			require.Contains(t, end, step.Object.Name)
			delete(end, step.Object.Name)
			steps = append(steps, "delete "+step.Object.Name)
		} else {
			require.LessOrEqual(t, len(step.Object.Status.Decisions), placement.MaxSliceLength)
			end[step.Object.Name] = step.Object
			verb := "write "
			if _, confirmed := step.Object.Annotations[wellknown.AnnotationConfirmed]; confirmed {
				verb = "confirm "
			}
			steps = append(steps, verb+step.Object.Name)
		}
		now := clustersIn(end)
		for name, must := range stays {
			require.False(t, must && !now[name], "%s vanished after %s", name, steps)
		}
	}
	return steps, end
}

func clustersIn(all map[string]*clusterv1beta1.PlacementDecision) map[string]bool {
	result := map[string]bool{}
	for _, o := range all {
		for _, d := range o.Status.Decisions {
			result[d.ClusterName] = true
		}
	}
	return result
}

func TestUpdates(t *testing.T) {
	for name, test := range map[string]struct {
		former, wanted objects
		want           []string
	}{
		"nothing":                                  {nil, nil, nil},
		"the same":                                 {sliced(2, "a", "b", "c"), sliced(2, "a", "b", "c"), nil},
		"the first":                                {nil, sliced(2, "a", "b", "c"), []string{"write p-decision-1", "write p-decision-2"}},
		"one is new at the end":                    {sliced(2, "a", "b", "c"), sliced(2, "a", "b", "c", "d"), []string{"write p-decision-2"}},
		"all move down: the last goes first":       {sliced(2, "b", "c", "d", "e"), sliced(2, "a", "b", "c", "d", "e"), []string{"write p-decision-3", "write p-decision-2", "write p-decision-1"}},
		"all move up: the first goes first":        {sliced(2, "a", "b", "c", "d", "e"), sliced(2, "b", "c", "d", "e"), []string{"write p-decision-1", "write p-decision-2", "delete p-decision-3"}},
		"all are gone":                             {sliced(2, "a", "b", "c"), sliced(2)[:0], []string{"delete p-decision-1", "delete p-decision-2"}},
		"two change places: they need a third one": {sliced(1, "a", "b"), sliced(1, "b", "a"), []string{"write p-decision-3", "write p-decision-1", "write p-decision-2", "delete p-decision-3"}},
		"a cluster that was in two stays in one":   {append(sliced(2, "a", "b"), decision("ns", "p", "x", "a")), sliced(2, "a", "b"), []string{"confirm p-decision-1", "delete x"}},
		"which is to be written in any case":       {append(sliced(2, "a", "b"), decision("ns", "p", "x", "a")), sliced(2, "a", "c"), []string{"write p-decision-1", "delete x"}},
	} {
		t.Run(name, func(t *testing.T) {
			steps, _ := replay(t, test.former, test.wanted)
			require.ElementsMatch(t, test.want, steps)
			if len(test.want) > 0 {
				require.Equal(t, test.want[len(test.want)-1][:5], steps[len(steps)-1][:5])
			}
		})
	}
}

func TestUpdatesOfLabels(t *testing.T) {
	former, wanted := sliced(2, "a", "b"), sliced(2, "a", "b")
	wanted[0].Labels[clusterv1beta1.DecisionGroupNameLabel] = ""
	former[0].Labels["someone's"] = "own"
	require.Len(t, placement.Updates(former, wanted), 1, "a missing label is written, even an empty one")
	former[0].Labels[clusterv1beta1.DecisionGroupNameLabel] = ""
	require.Empty(t, placement.Updates(former, wanted), "labels of others are theirs")
}

// TestObjectsInBetweenAreOfTheGroup checks that a temporary object has the labels of its clusters' decision group, so that
// readers of a group find no other clusters.
func TestObjectsInBetweenAreOfTheGroup(t *testing.T) {
	former, wanted := sliced(1, "a", "b"), sliced(1, "b", "a")
	for i := range wanted {
		former[i].Labels[clusterv1beta1.DecisionGroupIndexLabel] = fmt.Sprint(i)
		wanted[i].Labels[clusterv1beta1.DecisionGroupIndexLabel] = fmt.Sprint(i)
	}
	first := placement.Updates(former, wanted)[0].Object
	require.Equal(t, "p-decision-3", first.Name)
	for _, o := range wanted {
		if o.Status.Decisions[0] == first.Status.Decisions[0] {
			require.Equal(t, o.Labels, first.Labels)
		}
	}
}

func TestUpdatesNeverLoseAClusterThatStays(t *testing.T) {
	name := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("c%d", rapid.IntRange(0, 20).Draw(t, "n")) })
	names := rapid.SliceOfNDistinct(name, 0, 20, rapid.ID)
	cases.Check(t, func(rt *rapid.T) {
		former := sliced(rapid.IntRange(1, 4).Draw(rt, "former length"), names.Draw(rt, "former")...)
		wanted := sliced(rapid.IntRange(1, 4).Draw(rt, "wanted length"), names.Draw(rt, "wanted")...)
		if len(former) > 0 && rapid.Bool().Draw(rt, "interrupted before") {
			former = append(former, decision("ns", "p", "p-decision-9", names.Draw(rt, "left over")...))
		}
		_, end := replay(rt, former, wanted)
		require.Len(rt, end, len(wanted))
		for _, o := range wanted {
			require.Equal(rt, o.Labels, end[o.Name].Labels)
			require.Equal(rt, o.Status, end[o.Name].Status)
		}
	})
}

// TestUpdatesOfManySlices checks that no temporary objects are needed if two thousand clusters move by one position.
func TestUpdatesOfManySlices(t *testing.T) {
	var clusters []string
	for i := range 2001 {
		clusters = append(clusters, fmt.Sprintf("c%04d", i))
	}
	steps, _ := replay(t, sliced(100, clusters[1:]...), sliced(100, clusters...))
	require.Len(t, steps, 21)
	steps, _ = replay(t, sliced(100, clusters...), sliced(100, clusters[1:]...))
	require.Len(t, steps, 21)
}

// versions has the objects of a Placement with their versions, as an API server stores them.
type versions struct {
	objects map[string]*clusterv1beta1.PlacementDecision
	last    int
}

// take takes a step if the object has the given version, and reports whether it did. The version "" means that the object does
// not exist.
func (v *versions) take(step placement.Step, version string) bool {
	is := ""
	if object := v.objects[step.Object.Name]; object != nil {
		is = object.ResourceVersion
	}
	if is != version {
		return false
	}
	if step.Delete {
		delete(v.objects, step.Object.Name)
		return true
	}
	v.last++
	object := step.Object.DeepCopy()
	object.ResourceVersion = strconv.Itoa(v.last)
	v.objects[object.Name] = object
	return true
}

// stepper is a writer that takes steps which were computed from an earlier state.
type stepper struct {
	steps []placement.Step
	known map[string]string
}

func newStepper(former, wanted objects) *stepper {
	s := &stepper{steps: placement.Updates(former, wanted), known: map[string]string{}}
	for _, object := range former {
		s.known[object.Name] = object.ResourceVersion
	}
	return s
}

// step takes the next step. If the step fails, the stepper gives up. It also gives up if lost is set: then the response to the
// write is lost.
func (s *stepper) step(v *versions, lost bool) {
	step := s.steps[0]
	s.steps = s.steps[1:]
	if !v.take(step, s.known[step.Object.Name]) || lost {
		s.steps = nil
		return
	}
	if s.known[step.Object.Name] = ""; !step.Delete {
		s.known[step.Object.Name] = v.objects[step.Object.Name].ResourceVersion
	}
}

// TestUpdatesOfSeveralAtATime lets several writers take steps at the same time. Each writer has read a possibly outdated state
// and wants another result. Some writers pause, and some lose the response to their last step. After each step, every cluster
// must be in an object.
func TestUpdatesOfSeveralAtATime(t *testing.T) {
	taken, refused, confirmed, lostOnes := 0, 0, 0, 0
	cases.Until(t, cases.Of(50, 1000), func() bool { return min(taken, refused, confirmed, lostOnes) > 0 }, func(t *rapid.T) {
		const clusters = 4
		draw := func() objects {
			var parts [3][]string
			for i := range clusters {
				at := rapid.IntRange(0, len(parts)-1).Draw(t, "object")
				parts[at] = append(parts[at], fmt.Sprintf("c%d", i))
			}
			var result objects
			for i, names := range parts {
				if len(names) > 0 {
					result = append(result, decision("ns", "p", fmt.Sprintf("p-decision-%d", i+1), names...))
				}
			}
			return result
		}
		v := &versions{objects: map[string]*clusterv1beta1.PlacementDecision{}}
		for _, object := range draw() {
			require.True(t, v.take(placement.Step{Object: object}, ""))
		}
		history := []map[string]*clusterv1beta1.PlacementDecision{maps.Clone(v.objects)}
		look := func() objects {
			var result objects
			for i := range 5 {
				name := fmt.Sprintf("p-decision-%d", i+1)
				back := max(0, rapid.IntRange(-10, 3).Draw(t, "versions ago"))
				if object := history[max(0, len(history)-1-back)][name]; object != nil {
					result = append(result, object)
				}
			}
			return result
		}
		steppers := make([]*stepper, 3)
		for i := range steppers {
			steppers[i] = &stepper{}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s := rapid.SampledFrom(steppers).Draw(t, "who")
			if len(s.steps) == 0 {
				*s = *newStepper(look(), draw())
				continue
			}
			_, confirms := s.steps[0].Object.Annotations[wellknown.AnnotationConfirmed]
			lost := rapid.IntRange(0, 9).Draw(t, "lost") == 0
			was := fmt.Sprint(s.steps[0].Object.Name, clustersOf(s.steps[0].Object), " delete: ", s.steps[0].Delete)
			before := maps.Clone(v.objects)
			s.step(v, lost)
			if maps.Equal(before, v.objects) {
				refused++
				continue
			}
			taken++
			if lost {
				lostOnes++
			}
			if confirms {
				confirmed++
			}
			history = append(history, maps.Clone(v.objects))
			require.Len(t, clustersIn(v.objects), clusters, "after %s", was)
		}
	})
	require.NotZero(t, taken)
	require.NotZero(t, refused)
	require.NotZero(t, confirmed)
	require.NotZero(t, lostOnes)
	t.Logf("%d steps, %d refused, %d confirm, %d lost answers", taken, refused, confirmed, lostOnes)
}

func clustersOf(object *clusterv1beta1.PlacementDecision) []string {
	var result []string
	for _, d := range object.Status.Decisions {
		result = append(result, d.ClusterName)
	}
	slices.Sort(result)
	return result
}
