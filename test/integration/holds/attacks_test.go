// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
)

// record returns the pod's condition that records the devices that the scheduler holds for the pod.
func (s *scene) record(name string) corev1.PodCondition {
	s.Helper()
	if condition := hold.ConditionOf(s.Pod(s, name)); condition != nil {
		return *condition
	}
	return corev1.PodCondition{}
}

// second starts a second scheduler with its own profile, and returns the profile and the proxy to the API server. s.scheduler
// and s.crossing still are for the first scheduler.
func (s *scene) second() (profile string, c *crossing.Crossing) {
	s.Helper()
	first, firstCrossing := s.scheduler, s.crossing
	profile = s.ours + "-second"
	s.start(onlyProfile(profile))
	c = s.crossing
	s.scheduler, s.crossing = first, firstCrossing
	return profile, c
}

// taint sets the taints of the first node. The argument is JSON: a taint for memory pressure, or null.
func (s *scene) taint(taints string) {
	s.Helper()
	patch := []byte(`{"spec":{"taints":` + taints + `}}`)
	_, err := s.Client().CoreV1().Nodes().Patch(s.Context(), s.Nodes[0], types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(s, err)
}

// TestBriefTaintDoesNotEndAHold sets a taint on the node where devices are held, and removes it soon, while the victim is
// ending. The hold must not end: no other pod may be evicted, and no other pod may get the devices.
func TestBriefTaintDoesNotEndAHold(t *testing.T) {
	s := newScene(t, "brief", 2, wholeDevices)
	s.fill(s.Nodes[1], "other", "p20")
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	s.run("thief", s.form.unit(s.driver, 2), of("n50"))
	s.requireKept("thief")
	s.taint(`[{"key":"node.kubernetes.io/memory-pressure","effect":"NoSchedule"}]`)
	s.tryAgain(0, "job")
	s.taint(`null`)
	s.tryAgain(0, "job")
	require.Equal(t, corev1.ConditionTrue, s.record("job").Status)
	s.requireUnbound("thief")
	s.end("victim")
	s.RequireRunning(t, "job")
	s.requireKept("thief")
	s.requireEvicted("victim")
	s.requireNothingHeld()
}

// TestResumedHoldHasOtherDevices makes an eviction fail. When the scheduler resumes it, the driver has tainted one of the
// devices, so the scheduler holds other devices. A second scheduler must not allocate these devices.
func TestResumedHoldHasOtherDevices(t *testing.T) {
	s := newScene(t, "resumed", 1, bareNodes)
	published := s.publish(s.Nodes[0], 6, 1)
	s.run("victim", wholeDevices.unit(s.driver, 2), of("p10"), on(s.Nodes[0]))
	s.RequireRunning(t, "victim")
	profile, _ := s.second()
	refused := s.crossing.Refuse(0, crossing.IsDeletion)
	s.run("job", inARow(s.driver, units), of("p50"))
	env.Receive(t, "the eviction", refused.Reached())

	api := s.Client().ResourceV1().ResourceSlices()
	slice, err := api.Get(t.Context(), published.Name, metav1.GetOptions{})
	require.NoError(t, err)
	slice.Spec.Pool.Generation++
	slice.Spec.Devices[0].Taints = []resourceapi.DeviceTaint{{Key: "bad", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	_, err = api.Update(t.Context(), slice, metav1.UpdateOptions{})
	require.NoError(t, err)
	env.Eventually(t, "d4 is held", func(ctx context.Context) (string, error) {
		if message := s.record("job").Message; !env.ContainsAll(message, []string{`"d4"`}) {
			return message, s.poke(ctx)
		}
		return "", nil
	})
	refused.Release()
	s.ending("victim")
	s.run("ours", wholeDevices.unit(s.driver, 4), of("n50"))
	s.requireKept("ours")
	s.run("thief", wholeDevices.unit(s.driver, 4), of("n50"), by(profile))
	s.refusedOrBound("thief")
	s.requireUnbound("thief")
}

// TestRecordOfABoundPod kills the scheduler after it has bound the preemptor and before it updates the preemptor's condition.
// The next scheduler must update the condition.
func TestRecordOfABoundPod(t *testing.T) {
	s := newScene(t, "stale", 1, wholeDevices)
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	release := s.crossing.Stop(0, crossing.IsRelease)
	s.end("victim")
	s.RequireRunning(t, "job")
	env.Receive(t, "the write that the hold has ended", release.Reached())
	s.kill()
	s.start()
	s.pod("later", nil, of("p10"))
	s.RequireRunning(t, "later")
	env.Eventually(t, "the condition says that nothing is held", func(context.Context) (string, error) {
		if record := s.record("job"); record.Status != corev1.ConditionFalse {
			return record.Message, nil
		}
		return "", nil
	})
}
