// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
)

// TestClaimsOfVictimsAreNotJoined creates pods that use the claim of an evicted pod. If they were bound, the claim would stay
// allocated, and the preemptor would never get its devices. So they must wait.
func TestClaimsOfVictimsAreNotJoined(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t, "joined", 1, f)
			s.occupy("victim", s.Nodes[0], 0, "p10")
			s.run("job", f.all(s.driver), of("p50"))
			s.ending("victim")
			s.pod("lower", []string{"victim"}, of("p10"))
			s.pod("equal", []string{"victim"}, of("n50"))
			s.pod("stock", []string{"victim"}, of("p10"), by(s.stock))
			s.requireKept("lower", "equal", "stock")

			s.end("victim")
			s.RequireRunning(t, "job")
			s.requireKept("lower", "equal", "stock")
			s.requireEvicted("victim")
			s.requireNothingHeld()
			s.requireNoneInVain()

			s.end("job")
			s.RequireRunning(t, "lower", "equal", "stock")
		})
	}
}

// TestReplicaSetOnOneClaimIsEvictedOnce evicts a pod of a ReplicaSet whose pods all use one claim. The ReplicaSet creates
// another pod at once. This pod must not be bound and evicted again.
func TestReplicaSetOnOneClaimIsEvictedOnce(t *testing.T) {
	s := newScene(t, "replicas", 1, wholeDevices)
	s.CreateClaim(t, "shared", s.form.unit(s.driver, 0)...)
	first := s.replicaSet("web", "shared", "p10")
	s.RequireRunning(t, first)
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending(first)

	second := s.replica("web", first)
	s.requireKept(second)
	s.requireEvicted(first)
	s.end(first)
	s.RequireRunning(t, "job")
	s.requireKept(second)
	s.requireEvicted(first)
	s.requireNothingHeld()
	s.requireNoneInVain()

	s.end("job")
	s.RequireRunning(t, second)
}

// replicaSet creates a ReplicaSet with one pod, and returns the name of the pod.
func (s *scene) replicaSet(name, claim, class string) string {
	s.Helper()
	pod := env.Pod("", s.ours, claim)
	pod.Labels = map[string]string{"app": name}
	pod.Spec.NodeSelector = map[string]string{env.LabLabel: s.Namespace}
	pod.Spec.PriorityClassName = class
	env.Create(s, s.Client().AppsV1().ReplicaSets(s.Namespace), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	})
	return s.replica(name, "")
}

// replica waits for a pod of the ReplicaSet other than the pod named other, and returns its name.
func (s *scene) replica(set, other string) (name string) {
	s.Helper()
	env.Eventually(s, "ReplicaSet "+set+" creates a pod", func(ctx context.Context) (string, error) {
		pods, err := s.pods().List(ctx, metav1.ListOptions{LabelSelector: "app=" + set})
		for i := range pods.Items {
			if pods.Items[i].Name != other && pods.Items[i].DeletionTimestamp == nil {
				name = pods.Items[i].Name
				return "", nil
			}
		}
		return fmt.Sprintf("there are %d", len(pods.Items)), err
	})
	return name
}

// TestPodsWithANodeNameJoin creates pods that use the victim's claim and set spec.nodeName, so that no scheduler can stop them.
// The scheduler must evict them for the same hold. The preemptor is allowed only one preemption.
func TestPodsWithANodeNameJoin(t *testing.T) {
	s := newScene(t, "past", 1, wholeDevices)
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	victims := []string{"victim"}
	for i := range 3 {
		joiner := fmt.Sprint("past-", i)
		s.pod(joiner, []string{"victim"}, of("p10"), nameNode(s.Nodes[0]))
		env.Eventually(t, "pod "+joiner+" is evicted", func(ctx context.Context) (string, error) {
			if s.Pod(t, joiner).DeletionTimestamp == nil {
				return "it is not", s.poke(ctx)
			}
			return "", nil
		})
		victims = append(victims, joiner)
	}
	record := s.record("job")
	require.Equal(t, corev1.ConditionTrue, record.Status)
	require.True(t, env.ContainsAll(record.Message, []string{`"try":1`, `"joined":3`}), record.Message)
	s.end(victims...)
	s.RequireRunning(t, "job")
	s.requireEvicted(victims...)
	s.requireNothingHeld()
	s.requireNoneInVain()
}

// TestAssumedPodKeepsAClaim binds a pod that shares a claim with a pod on another node. Before the API server has recorded the
// sharing, a preemptor needs the claim's devices. The scheduler must not evict the other pod, because the claim would stay
// allocated.
func TestAssumedPodKeepsAClaim(t *testing.T) {
	s := newScene(t, "assumed", 2, bareNodes)
	slice := resourceSlicesOf(s.driver, s.Nodes[0], resourceapi.ResourceSliceSpec{Devices: row(0, 1)})[0]
	slice.Spec.NodeName, slice.Spec.AllNodes = nil, ptr.To(true)
	s.CreateSlice(t, slice)
	s.CreateClaim(t, "shared", wholeDevices.unit(s.driver, 0)...)
	s.pod("first", []string{"shared"}, of("p10"), on(s.Nodes[0]))
	s.RequireRunning(t, "first")
	reservation := s.crossing.Stop(0, crossing.IsReservation)
	s.pod("second", []string{"shared"}, of("p10"), on(s.Nodes[1]))
	env.Receive(t, "the reservation", reservation.Reached())
	s.run("job", wholeDevices.unit(s.driver, 0), of("p50"))
	s.requireKept("job")
	s.requireEvicted()
	reservation.Release()
	s.RequireRunning(t, "second")
	s.requireKept("job")
	s.requireEvicted()
}

// TestHigherPriorityJoins creates a pod that uses the victim's claim and has a higher priority than the preemptor. The pod may
// use the claim, so the hold must end. Other pods must get the devices that the preemptor can't use any more.
func TestHigherPriorityJoins(t *testing.T) {
	s := newScene(t, "higher", 1, wholeDevices)
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	s.run("small", s.form.unit(s.driver, 1), of("p10"))
	s.requireKept("small")

	s.pod("top", []string{"victim"}, of("p90"))
	s.RequireRunning(t, "top")
	s.RequireRunning(t, "small")
	s.requireNothingHeld()
	s.end("victim")
	s.requireKept("job")
	s.requireEvicted("victim")
	require.Equal(t, []string{"d0"}, s.DevicesOf(t, "top"))
}

// TestOneClaimIsEvictedForOnce creates three preemptors that use one claim. The scheduler must evict pods for only one set of
// devices.
func TestOneClaimIsEvictedForOnce(t *testing.T) {
	t.Parallel()
	for name, classes := range map[string][]string{
		"equal priorities": {"p50", "p50", "p50"}, "rising priorities": {"p20", "p30", "p50"}, "falling priorities": {"p50", "p30", "p20"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "one", 3, wholeDevices)
			for i, node := range s.Nodes {
				s.run(fmt.Sprint("victim-", i), s.form.all(s.driver), of("p10"), on(node))
				s.RequireRunning(t, fmt.Sprint("victim-", i))
			}
			s.CreateClaim(t, "job", s.form.all(s.driver)...)
			s.pod("job-0", []string{"job"}, of(classes[0]))
			env.Eventually(t, "a pod is evicted", func(context.Context) (string, error) {
				if len(s.evicted()) == 0 {
					return "there is none", nil
				}
				return "", nil
			})
			s.pod("job-1", []string{"job"}, of(classes[1]))
			s.pod("job-2", []string{"job"}, of(classes[2]))
			s.requireKept("job-1", "job-2")
			victims := s.evicted()
			require.Len(t, victims, 1, "evicted pods")

			s.end(victims...)
			s.RequireRunning(t, "job-0", "job-1", "job-2")
			s.requireEvicted(victims...)
			s.requireNothingHeld()
			s.requireNoneInVain()
		})
	}
}
