// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/test/internal/env"
)

// TestBackOffDoesNotEndAHold makes the claim of a preemptor back off while a victim is ending, because the search on the second
// node exceeds the budget. The hold must not end.
func TestBackOffDoesNotEndAHold(t *testing.T) {
	s := newScene(t, "backs-off", 2, bareNodes, withArgs(t, func(args *configv1alpha1.DynamicResourcesCELArgs) {
		args.Budget.Cost = ptr.To[int64](1000)
		args.BackOff.Initial = &metav1.Duration{Duration: 2 * time.Second}
	}))
	s.publish(s.Nodes[0], units, 1)
	s.run("victim", []env.Part{env.Request("units", s.driver, 1)}, of("p10"), on(s.Nodes[0]))
	s.RequireRunning(t, "victim")
	s.run("job", []env.Part{env.Request("units", s.driver, units), env.Constrained("good", s.isGood())}, of("p50"))
	s.ending("victim")

	slice := s.publish(s.Nodes[1], 16, 0)
	env.Eventually(t, "the claim backs off", func(ctx context.Context) (string, error) {
		if env.IsRefused(s.Pod(t, "job"), "budget") {
			return "", nil
		}
		return fmt.Sprintf("pod job was tried %d times", s.tries("job")), s.poke(ctx)
	})
	s.tryAgain(0, "job")
	s.run("thief", []env.Part{env.Request("units", s.driver, 1)}, of("n50"), on(s.Nodes[0]))
	s.requireKept("thief")
	require.NoError(t, s.Client().ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}))
	s.end("victim")
	s.RequireRunning(t, "job")
	s.requireKept("thief")
	s.requireEvicted("victim")
	s.requireNothingHeld()
	s.requireNoneInVain()
}

// bareNodes is a form of nodes without devices. The test publishes devices later.
var bareNodes = form{name: "bare", slices: func() []resourceapi.ResourceSliceSpec { return nil }}

// publish publishes n devices on a node. Their attribute good has the given value.
func (s *scene) publish(node string, n int, good int64) *resourceapi.ResourceSlice {
	s.Helper()
	devices := row(0, n)
	for i := range devices {
		devices[i].Attributes["good"] = resourceapi.DeviceAttribute{IntValue: &good}
	}
	slice := resourceSlicesOf(s.driver, node, resourceapi.ResourceSliceSpec{Devices: devices})[0]
	s.CreateSlice(s, slice)
	return slice
}

// isGood returns an expression that is true if all devices have good = 1. The search can't analyse the expression, so it
// evaluates it for each set.
func (s *scene) isGood() string {
	return fmt.Sprintf("devices.slice(0, 1).map(d, d.attributes[%[1]q].good + 0 * d.attributes[%[1]q].index).sum() == 1", s.driver)
}

// from restricts a claim to devices with an index of at least first.
func from(driver string, first int) env.Part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{env.Selector(fmt.Sprintf("device.attributes[%q].index >= %d", driver, first))}
	}
}

// TestNominationsDoNotEndAHold creates a pod of a higher priority that evicts pods on the node where devices are held for
// another pod. kube-scheduler then clears the other pod's nomination. The hold of the other pod must not end.
func TestNominationsDoNotEndAHold(t *testing.T) {
	t.Parallel()
	for name, evict := range map[string]func(*scene) []string{
		"for other devices": func(s *scene) []string {
			// The pod of the higher priority would also fit on the devices that are held for the other pod. Their victims are
			// already being deleted.
			s.run("high", append(inARow(s.driver, units), from(s.driver, 5)), of("p60"))
			return []string{"c-5", "c-6", "c-7", "c-8"}
		},
		"for CPUs": func(s *scene) []string {
			s.pod("high", nil, of("p60"), cores(40))
			return []string{"cpu"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "nominated", 1, bareNodes)
			s.publish(s.Nodes[0], 9, 1)
			unit := func(i int) []env.Part { return wholeDevices.unit(s.driver, i) }
			s.run("wall", unit(4), of("p90"))
			s.RequireRunning(t, "wall")
			low, high := []string{"a", "b"}, []string{"c-5", "c-6", "c-7", "c-8"}
			for i, name := range append(low, high...) {
				class, index := "p10", i+1
				if i >= len(low) {
					class, index = "p20", i+3
				}
				s.run(name, unit(index), of(class))
				s.RequireRunning(t, name)
			}
			s.pod("cpu", nil, of("p20"), cores(40))
			s.RequireRunning(t, "cpu")

			s.run("low", inARow(s.driver, units), of("p50"))
			s.ending(low...)
			s.run("thief", []env.Part{env.Request("unit", s.driver, 1)}, of("n50"))
			s.run("lower", []env.Part{env.Request("unit", s.driver, 1)}, of("p10"))
			s.requireKept("thief", "lower")
			victims := evict(s)
			s.ending(victims...)
			s.requireKept("thief", "lower")
			s.end(append(victims, low...)...)
			s.RequireRunning(t, "low", "high")
			s.requireKept("thief", "lower")
			s.requireEvicted(append(victims, low...)...)
			s.requireNothingHeld()
			s.requireNoneInVain()
		})
	}
}

// TestDeletionEndsAHold deletes a preemptor. A finalizer keeps its object, but the hold must end.
func TestDeletionEndsAHold(t *testing.T) {
	s := newScene(t, "finalized", 1, wholeDevices)
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"), finalized)
	s.ending("victim")
	s.run("waits", s.form.unit(s.driver, 1), of("p10"))
	s.requireKept("waits")
	s.end("job")
	s.ending("job")
	s.requireUntilBound("waits")
	s.requireNothingHeld()
	s.requireEvicted("victim")
}

// requireUntilBound requires that a pod is bound within five more scheduling attempts.
func (s *scene) requireUntilBound(name string) {
	s.Helper()
	s.tryAgain(5, name)
	require.True(s, s.isBound(name), "pod %s waits for devices that should not be held any more", name)
}

// TestDeletedClaimEndsAHold deletes the claim of a preemptor. The preemptor can't be bound any more, so the hold must end.
func TestDeletedClaimEndsAHold(t *testing.T) {
	s := newScene(t, "unclaimed", 1, wholeDevices)
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	s.run("waits", s.form.unit(s.driver, 1), of("p10"))
	s.requireKept("waits")
	require.NoError(t, s.Client().ResourceV1().ResourceClaims(s.Namespace).Delete(t.Context(), "job", metav1.DeleteOptions{}))
	s.requireUntilBound("waits")
	s.requireNothingHeld()
	s.requireEvicted("victim")
}

// TestMessagesNameNodesThatThePodCouldUse holds devices of the first node, and creates a pod that may only use the second node.
// The message about the pod must not name the first node.
func TestMessagesNameNodesThatThePodCouldUse(t *testing.T) {
	s := newScene(t, "named", 2, wholeDevices)
	s.fill(s.Nodes[1], "other", "p90")
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	s.run("here", s.form.unit(s.driver, 1), of("p10"), on(s.Nodes[0]))
	s.run("there", s.form.unit(s.driver, 1), of("p10"), on(s.Nodes[1]))
	s.requireKept("here", "there")
	require.True(t, env.IsRefused(s.Pod(t, "here"), s.Nodes[0], "are held"))
	notes, err := s.Notes(t.Context(), s.Pod(t, "there"), "FailedScheduling")
	require.NoError(t, err)
	require.NotEmpty(t, notes)
	for _, note := range notes {
		require.NotContains(t, note, s.Nodes[0])
	}
}

// TestHoldsOfAnotherProcess runs two schedulers with their own profiles. Each must respect the devices that the other holds.
func TestHoldsOfAnotherProcess(t *testing.T) {
	s := newScene(t, "first", 1, wholeDevices)
	s.occupy("victim", s.Nodes[0], 0, "p10")
	first := s.scheduler
	second := s.ours + "-second"
	s.start(onlyProfile(second))
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	s.run("thief", s.form.unit(s.driver, 1), of("n50"), by(second))
	s.pod("joiner", []string{"victim"}, of("p10"), by(second))
	s.requireKept("thief", "joiner")
	// The second scheduler may see that the preemptor is bound before it sees that the claim is allocated.
	s.end("thief", "joiner")
	s.end("victim")
	s.RequireRunning(t, "job")
	s.requireEvicted("victim")
	s.requireNothingHeld()
	s.scheduler = first
	s.requireNothingHeld()
	s.requireNoneInVain()
}
