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

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

// versions are the objects of a Placement as an API server stores them.
type versions struct {
	objects map[string]*clusterv1beta1.PlacementDecision
	last    int
}

// take takes a step, if the object is there in this version, and tells whether it was.
// No version is one that is not there.
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

// stepper takes steps that were made for what was there at some time.
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

// step takes the next step, or gives up. With lost it gives up without to know whether it
// has taken it.
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

// Several take steps at the same time, each for what it has seen, each to something else.
// Some of what they have seen is old, some stop for a while, and some don't know whether
// their last step was taken. All clusters are in some object after each step.
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
			_, confirms := s.steps[0].Object.Annotations[placement.ConfirmedAnnotation]
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

// One leader has written the second of two objects, is paused, and is going to write the
// first. Another one finds the cluster in both and wants it where it was.
func TestUpdatesOfAPausedLeader(t *testing.T) {
	object := func(number int, names ...string) *clusterv1beta1.PlacementDecision {
		return decision("ns", "p", fmt.Sprintf("p-decision-%d", number), names...)
	}
	v := &versions{objects: map[string]*clusterv1beta1.PlacementDecision{}}
	list := func() objects {
		var result objects
		for _, name := range slices.Sorted(maps.Keys(v.objects)) {
			result = append(result, v.objects[name])
		}
		return result
	}
	require.True(t, v.take(placement.Step{Object: object(1, "a", "b")}, ""))
	require.True(t, v.take(placement.Step{Object: object(2, "c")}, ""))

	paused := newStepper(list(), objects{object(1, "b"), object(2, "a", "c")})
	paused.step(v, false)
	leader := newStepper(list(), objects{object(1, "a", "b"), object(2, "c")})
	require.Len(t, leader.steps, 2)
	leader.step(v, false)
	leader.step(v, false)
	require.Empty(t, leader.steps)
	require.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, clustersIn(v.objects))
	paused.step(v, false)
	require.Empty(t, paused.steps)
	require.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, clustersIn(v.objects))
	require.Len(t, list(), 2)
	require.Equal(t, []string{"a", "b"}, clustersOf(v.objects["p-decision-1"]))
}
