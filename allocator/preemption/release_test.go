// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// user returns a pod that uses claims with the given names. The UID of the pod is its name.
func user(name string, claims ...string) *v1.Pod {
	pod := podOf(name, 1, 1)
	pod.UID = types.UID(name)
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, v1.PodResourceClaim{Name: claim, ResourceClaimName: ptr.To(claim)})
	}
	return pod
}

// having returns a claim that has devices and is reserved for pods. The UID of the claim is its name.
func having(name string, devices []string, pods ...string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Finalizers: []string{resourceapi.Finalizer}}}
	if len(devices) > 0 {
		claim.Status.Allocation = allocation(devices...)
	}
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID(pod)})
	}
	return claim
}

func allocation(devices ...string) *resourceapi.AllocationResult {
	result := &resourceapi.AllocationResult{}
	for _, device := range devices {
		result.Devices.Results = append(result.Devices.Results, resourceapi.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: device})
	}
	return result
}

// releaseOf returns a Release that finds the given claims.
func releaseOf(claims ...*resourceapi.ResourceClaim) *Release {
	return &Release{Claim: func(namespace, name string) *resourceapi.ResourceClaim {
		for _, claim := range claims {
			if claim.Namespace == namespace && claim.Name == name {
				return claim
			}
		}
		return nil
	}}
}

// given returns the names of the devices that each claim gives back when the pods in gone are deleted.
func given(r *Release, gone ...*v1.Pod) map[string][]string {
	pods := map[types.UID]*v1.Pod{}
	for _, pod := range gone {
		pods[pod.UID] = pod
	}
	result := map[string][]string{}
	for _, claim := range r.Claims(pods) {
		result[claim.Name] = nil
		for _, has := range claim.Status.Allocation.Devices.Results {
			result[claim.Name] = append(result[claim.Name], has.Device)
		}
	}
	return result
}

func TestTheLastUserGivesBack(t *testing.T) {
	r := releaseOf(having("shared", []string{"0", "1"}, "a", "b"), having("own", []string{"2"}, "a"))
	a, b := user("a", "shared", "own"), user("b", "shared", "gone")
	require.Equal(t, map[string][]string{"own": {"2"}}, given(r, a))
	require.Empty(t, given(r, b))
	require.Equal(t, map[string][]string{"own": {"2"}, "shared": {"0", "1"}}, given(r, a, b))
}

func TestWhatKeepsItsDevices(t *testing.T) {
	unused, group, foreign, unfinished := having("c", []string{"0"}), having("c", []string{"0"}, "a"), having("c", []string{"0"}, "a"), having("c", []string{"0"}, "a")
	group.Status.ReservedFor[0].APIGroup, group.Status.ReservedFor[0].Resource = "scheduling.k8s.io", "podgroups"
	foreign.Status.ReservedFor[0].Resource = "others"
	unfinished.Finalizers = nil
	for name, claim := range map[string]*resourceapi.ResourceClaim{
		"a claim that nobody uses": unused, "one of a group": group, "one for something else": foreign, "one that the controller does not know": unfinished,
		"one without devices": having("c", nil, "a"),
	} {
		require.Empty(t, given(releaseOf(claim), user("a", "c")), name)
	}
	r := releaseOf(having("c", []string{"0"}, "a"))
	r.Own = sets.New[types.UID]("c")
	require.Empty(t, given(r, user("a", "c")))
}

// TestAllocationInProgress checks that a pod's own claim gives back an allocation that has not been written yet.
func TestAllocationInProgress(t *testing.T) {
	claim := having("c", nil)
	pod := user("a", "c")
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, v1.SchemeGroupVersion.WithKind("Pod"))}
	r := releaseOf(claim)
	require.Empty(t, given(r, pod))
	r.Pending = func(types.UID) *resourceapi.AllocationResult { return allocation("0") }
	require.Equal(t, map[string][]string{"c": {"0"}}, given(r, pod))
	require.Nil(t, claim.Status.Allocation)
	require.Equal(t, []structured.DeviceID{structured.MakeDeviceID("d", "p", "0")}, r.Has(pod))

	grouped := pod.DeepCopy()
	grouped.Spec.SchedulingGroup = &v1.PodSchedulingGroup{}
	require.Empty(t, given(r, grouped))
	claim.OwnerReferences = nil
	require.Empty(t, given(r, pod))
}

func TestHeldDevicesAreNotGivenBack(t *testing.T) {
	claim := having("c", []string{"0", "1"}, "a")
	r := releaseOf(claim)
	r.Held = sets.New(structured.MakeDeviceID("d", "p", "1"))
	require.Equal(t, map[string][]string{"c": {"0"}}, given(r, user("a", "c")))
	require.Len(t, claim.Status.Allocation.Devices.Results, 2)
	r.Held = sets.New(structured.MakeDeviceID("d", "q", "1"))
	require.Equal(t, map[string][]string{"c": {"0", "1"}}, given(r, user("a", "c")))
}

func TestDevicesThatOthersCanHaveToo(t *testing.T) {
	results := allocation("0", "1", "2").Devices.Results
	results[1].AdminAccess, results[2].ShareID = ptr.To(true), ptr.To(types.UID("s"))
	require.Equal(t, []structured.DeviceID{structured.MakeDeviceID("d", "p", "0")}, DevicesOf(results))
}

// TestClaimsOfExtendedResources checks that ClaimsOf returns the claim for extended resources that the pod's status names.
func TestClaimsOfExtendedResources(t *testing.T) {
	pod := podOf("a", 1, 1)
	require.False(t, UsesDevices(pod))
	pod.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "made"}
	require.True(t, UsesDevices(pod))
	require.Len(t, ClaimsOf(pod, releaseOf(having("made", nil)).Claim), 1)
	require.True(t, UsesDevices(user("b", "c")))
}

// podOf returns a pod with a priority and a start time in seconds. The start time 0 means that the pod has not started.
func podOf(name string, priority int32, start int64) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1.PodSpec{Priority: ptr.To(priority)}}
	if start != 0 {
		pod.Status.StartTime = &metav1.Time{Time: time.Unix(start, 0)}
	}
	return pod
}

func namesOf(pods []*v1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

func TestWhoIsMoreImportant(t *testing.T) {
	pods := []*v1.Pod{podOf("late", 5, 20), podOf("low", 4, 1), podOf("waiting", 5, 0), podOf("early", 5, 10), podOf("high", 6, 30)}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return CompareImportance(a, b, time.Unix(25, 0)) })
	require.Equal(t, []string{"high", "early", "late", "waiting", "low"}, namesOf(pods))
	require.Zero(t, PriorityOf(&v1.Pod{}))
	require.Equal(t, Pod{Priority: 5, Start: time.Unix(25, 0)}, PodOf(pods[3], nil, time.Unix(25, 0)))
}

func TestBudgetsThatAPodCountsFor(t *testing.T) {
	budgetFor := func(namespace string, allowed int32, selector *metav1.LabelSelector) *policy.PodDisruptionBudget {
		return &policy.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: policy.PodDisruptionBudgetSpec{Selector: selector},
			Status: policy.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
	}
	app := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	knows := budgetFor("ns", 4, app("a"))
	knows.Status.DisruptedPods = map[string]metav1.Time{"evicted": {}}
	budgets := NewBudgets([]*policy.PodDisruptionBudget{
		budgetFor("ns", 0, nil), budgetFor("ns", 9, &metav1.LabelSelector{}), budgetFor("ns", 9, wrong),
		budgetFor("ns", 1, app("a")), budgetFor("ns", 2, app("b")), budgetFor("other", 3, app("a")), knows,
	})
	require.Equal(t, []int32{0, 1, 2, 3, 4}, budgets.Allowed())
	pod := podOf("p", 1, 1)
	require.Empty(t, budgets.Of(pod))
	pod.Labels = map[string]string{"app": "a"}
	require.Equal(t, []int{1, 4}, budgets.Of(pod))
	pod.Name = "evicted"
	require.Equal(t, []int{1}, budgets.Of(pod))
}
