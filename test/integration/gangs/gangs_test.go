// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

func TestMain(m *testing.M) { env.Main(m) }

// gates are the feature gates for PodGroups that the API server and the schedulers need.
var gates = map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true}

// scheduler is the scheduler that all tests of the package share.
var scheduler *controlplane.Process

// restartScheduler kills the scheduler, calls between, and starts the scheduler again. more are additional feature gates; they
// stay on until the next restart.
func restartScheduler(e *env.Env, between func(), more ...string) {
	if scheduler != nil {
		scheduler.Kill()
	}
	between()
	with := maps.Clone(gates)
	for _, gate := range append(more, "CelsetNodeSetConstraint") {
		with[gate] = true
	}
	scheduler = e.StartScheduler(ofPackage, controlplane.SchedulerOptions{User: env.Scheduler.Name, FeatureGates: with})
}

// ofPackage is the testing.TB of the first test. It belongs to the whole package.
var ofPackage testing.TB

// cluster is a control plane that serves PodGroups, with a celset-scheduler as in manifests/scheduler.
var cluster = env.Share(func(t testing.TB) *env.Env {
	ofPackage = t
	served := maps.Clone(gates)
	// The API server serves CompositePodGroups. The scheduler ignores them unless a test turns on its feature gate.
	served[compositeGate] = true
	e := env.Start(t, controlplane.Options{
		SkipKwok: true, FeatureGates: served, Users: []controlplane.User{env.Scheduler},
		APIServerArgs: []string{fmt.Sprintf("--runtime-config=%s=true,%s=true", schedulingv1beta1.SchemeGroupVersion, schedulingv1alpha3.SchemeGroupVersion)},
	})
	e.ApplyManifests(t, "scheduler/rbac.yaml")
	restartScheduler(e, func() {})
	return e
})

// A lab has a ring of eight devices on each of its nodes.
type lab struct {
	*env.Lab
	ring topology.Topology
}

func newLab(t *testing.T, name string, nodes int) *lab {
	l := &lab{Lab: cluster(t).NewLab(t, name, nodes)}
	l.ring = l.Ring(t, 8)
	return l
}

// inARow returns the parts of a claim for n devices that are in a row on the ring.
func (l *lab) inARow(n int) []env.Part {
	driver := l.ring.Drivers()[0]
	return []env.Part{env.Request("mla", driver, int64(n)), env.Constrained("row", env.Contiguous(driver, n))}
}

// gang creates a PodGroup and its pods, and returns the names of the pods. Each pod has a claim of the same name for n devices
// in a row.
func (l *lab) gang(t *testing.T, name string, pods, n int) []string {
	t.Helper()
	l.podGroup(t, name, pods)
	var members []string
	for i := range pods {
		l.CreateClaim(t, fmt.Sprintf("%s-%d", name, i), l.inARow(n)...)
		members = append(members, l.memberOf(t, name, i, fmt.Sprintf("%s-%d", name, i)))
	}
	return members
}

// podGroup creates a PodGroup whose pods are scheduled all or not at all.
func (l *lab) podGroup(t *testing.T, name string, pods int) {
	t.Helper()
	env.Create(t, l.Client().SchedulingV1beta1().PodGroups(l.Namespace), &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(pods)}},
		},
	})
}

// memberOf creates the i-th pod of a PodGroup, and returns its name.
func (l *lab) memberOf(t *testing.T, group string, i int, claim string) string {
	t.Helper()
	member := fmt.Sprintf("%s-%d", group, i)
	pod := env.Pod(member, env.CelsetProfile, claim)
	pod.Spec.NodeSelector = map[string]string{env.LabLabel: l.Namespace}
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	l.CreatePodAsIs(t, pod)
	return member
}

// end makes a pod succeed, as a kubelet would. Its claim is then deallocated.
func (l *lab) end(t *testing.T, name string) {
	t.Helper()
	l.DeletePod(t, name)
	require.NoError(t, l.Client().ResourceV1().ResourceClaims(l.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// requireNothing requires that none of the pods is bound, and that their claims have no devices.
func (l *lab) requireNothing(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		require.Empty(t, l.Pod(t, name).Spec.NodeName, name)
		require.Empty(t, l.DevicesOf(t, name), name)
	}
}

// requireServed waits until the pods are bound with n devices each. It requires that no two claims have the same device.
func (l *lab) requireServed(t *testing.T, n int, names ...string) {
	t.Helper()
	l.RequireRunning(t, names...)
	users := map[string]string{}
	for _, name := range names {
		devices := l.DevicesOf(t, name)
		require.Len(t, devices, n, name)
		require.True(t, wiring.Contiguous(l.ring, devices), "%s has %v", name, devices)
		for _, device := range devices {
			at := l.Pod(t, name).Spec.NodeName + "/" + device
			require.Empty(t, users[at], "%s has %s, too", name, at)
			users[at] = name
		}
	}
}

// TestGangThatFitsIsBoundWhole creates a gang of four pods that need four devices in a row each. They fill the rings of two
// nodes.
func TestGangThatFitsIsBoundWhole(t *testing.T) {
	l := newLab(t, "whole", 2)
	l.requireServed(t, 4, l.gang(t, "whole", 4, 4)...)
}

// TestGangThatDoesNotFitBindsNobody creates a gang of two pods that need three devices in a row each. The third device of the
// node is in use, so the free devices don't contain two separate rows of three. The gang must hold no devices while it waits,
// so that another pod can get them. The gang must be bound when the third device is free.
func TestGangThatDoesNotFitBindsNobody(t *testing.T) {
	l := newLab(t, "nobody", 1)
	third := l.OccupyAs(t, env.CelsetProfile, l.Nodes[0], l.ring, "mla-2")
	members := l.gang(t, "two-rows", 2, 3)
	env.Until(t, "one is refused", func(context.Context) (bool, error) {
		return slices.ContainsFunc(members, func(name string) bool { return env.IsRefused(l.Pod(t, name)) }), nil
	})
	l.requireNothing(t, members...)
	// A row of five is free only if the gang does not hold the devices of its first pod.
	l.Run(t, "five", env.CelsetProfile, l.inARow(5)...)
	l.requireServed(t, 5, "five")
	l.requireNothing(t, members...)

	l.end(t, "five")
	l.requireNothing(t, members...)
	l.end(t, third)
	l.requireServed(t, 3, members...)

	// When the pods of the gang have ended, other pods can get the devices.
	for _, member := range members {
		l.end(t, member)
	}
	l.Run(t, "eight", env.CelsetProfile, l.inARow(8)...)
	l.requireServed(t, 8, "eight")
}
