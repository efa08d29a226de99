// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/clusterstate"
)

// owning returns a claim to which devices of one pool are allocated.
func owning(name string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	for i := range results {
		results[i].Driver, results[i].Pool, results[i].Request = "d", "p", "r"
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: named("ns", name)}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	return claim
}

func id(device string) structured.DeviceID { return structured.MakeDeviceID("d", "p", device) }

func TestOwners(t *testing.T) {
	share := func(id types.UID, memory string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{
			Device: "shared", ShareID: ptr.To(id),
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
		}
	}
	state := clusterstate.New(&clusterstate.Objects{Claims: []*resourceapi.ResourceClaim{
		owning("whole", resourceapi.DeviceRequestAllocationResult{Device: "a"}),
		owning("half", share("1", "1Gi")),
		owning("other-half", share("2", "2Gi")),
		owning("admin", resourceapi.DeviceRequestAllocationResult{Device: "b", AdminAccess: ptr.To(true)}),
		{ObjectMeta: named("ns", "pending")},
	}})

	owners := state.Owners()
	require.Len(t, owners, 3)
	require.Equal(t, "half", owners[id("shared")][0].Claim.Name)
	require.Equal(t, "other-half", owners[id("shared")][1].Claim.Name)
	require.True(t, owners[id("shared")][0].Shared)
	require.True(t, owners[id("b")][0].AdminAccess)
	require.Equal(t, "r", owners[id("a")][0].Request)
}

func TestTaintRules(t *testing.T) {
	slice := &resourceapi.ResourceSlice{ObjectMeta: named("", "s"), Spec: resourceapi.ResourceSliceSpec{
		Driver: "d", Pool: resourceapi.ResourcePool{Name: "p"}, Devices: []resourceapi.Device{{Name: "a"}, {Name: "b"}},
	}}
	rule := func(name string, selector *resourceapi.DeviceTaintSelector) *resourceapi.DeviceTaintRule {
		return &resourceapi.DeviceTaintRule{ObjectMeta: named("", name), Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: selector, Taint: resourceapi.DeviceTaint{Key: name, Effect: resourceapi.DeviceTaintEffectNoSchedule},
		}}
	}
	state := clusterstate.New(&clusterstate.Objects{
		Slices: []*resourceapi.ResourceSlice{slice},
		Amendments: clusterstate.Amendments{TaintRules: []*resourceapi.DeviceTaintRule{
			rule("all", &resourceapi.DeviceTaintSelector{}),
			rule("b", &resourceapi.DeviceTaintSelector{Driver: ptr.To("d"), Pool: ptr.To("p"), Device: ptr.To("b")}),
			rule("elsewhere", &resourceapi.DeviceTaintSelector{Pool: ptr.To("q")}),
			rule("none", nil),
		}},
	})
	keys := func(device resourceapi.Device) (keys []string) {
		for _, taint := range device.Taints {
			keys = append(keys, taint.Key)
		}
		return keys
	}
	tainted := state.Slices(true)[0]
	require.Equal(t, []string{"all"}, keys(tainted.Spec.Devices[0]))
	require.Equal(t, []string{"all", "b"}, keys(tainted.Spec.Devices[1]))
	require.Empty(t, slice.Spec.Devices[0].Taints, "what was read is not changed")
	require.Same(t, slice, state.Slices(false)[0])
}

func TestNodesAndClasses(t *testing.T) {
	objects := &clusterstate.Objects{
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: named("", "x")}},
		Slices: []*resourceapi.ResourceSlice{
			{Spec: resourceapi.ResourceSliceSpec{NodeName: ptr.To("node-2")}},
			{Spec: resourceapi.ResourceSliceSpec{NodeName: ptr.To("node-1")}},
			{Spec: resourceapi.ResourceSliceSpec{NodeName: ptr.To("node-2")}},
			{Spec: resourceapi.ResourceSliceSpec{AllNodes: ptr.To(true)}},
		},
	}
	state := clusterstate.New(objects)
	require.Equal(t, []string{"/node-1", "/node-2"}, names(state.Nodes()), "those that slices are for")
	_, err := state.ChosenNodes([]string{"node-3"})
	require.ErrorContains(t, err, `there is no node "node-3"`)
	chosen, err := state.ChosenNodes([]string{"node-2"})
	require.NoError(t, err)
	require.Equal(t, []string{"/node-2"}, names(chosen))

	objects.Nodes = []*corev1.Node{{ObjectMeta: named("", "only")}}
	require.Equal(t, []string{"/only"}, names(clusterstate.New(objects).Nodes()))

	_, err = state.Classes().Get("y")
	require.True(t, apierrors.IsNotFound(err))
	class, err := state.Classes().Get("x")
	require.NoError(t, err)
	all, err := state.Classes().List()
	require.NoError(t, err)
	require.Equal(t, []*resourceapi.DeviceClass{class}, all)
}

func subjects() *clusterstate.State {
	pod := &corev1.Pod{ObjectMeta: named("ns", "train"), Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "own", ResourceClaimName: ptr.To("mine")},
		{Name: "made", ResourceClaimTemplateName: ptr.To("t")},
		{Name: "yet", ResourceClaimTemplateName: ptr.To("t")},
		{Name: "needless", ResourceClaimTemplateName: ptr.To("t")},
	}}}
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
		{Name: "made", ResourceClaimName: ptr.To("train-made-abcde")}, {Name: "needless"},
	}
	lost := &corev1.Pod{ObjectMeta: named("ns", "lost"), Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "x", ResourceClaimName: ptr.To("nobody")},
	}}}
	lostToo := &corev1.Pod{ObjectMeta: named("ns", "lost-too"), Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "x", ResourceClaimTemplateName: ptr.To("nothing")},
	}}}
	return clusterstate.New(&clusterstate.Objects{
		Pods: []*corev1.Pod{pod, lost, lostToo},
		Claims: []*resourceapi.ResourceClaim{
			owning("mine", resourceapi.DeviceRequestAllocationResult{Device: "a"}),
			{ObjectMeta: named("ns", "train-made-abcde")}, {ObjectMeta: named("ns", "train")}, {ObjectMeta: named("other", "far")},
		},
		Templates: []*resourceapi.ResourceClaimTemplate{{
			ObjectMeta: named("ns", "t"), Spec: resourceapi.ResourceClaimTemplateSpec{Spec: wants("r")},
		}},
	})
}

func TestClaimsOfAPod(t *testing.T) {
	state := subjects()
	subject, err := state.Subject("pod/train", "ns")
	require.NoError(t, err)
	require.Equal(t, "Pod ns/train", subject.String())
	require.Equal(t, []string{"ns/mine", "ns/train-made-abcde", "ns/train-yet"}, names(subject.Claims))
	require.Equal(t, []string{"ns/train-made-abcde", "ns/train-yet"}, names(subject.Pending()))
	require.Equal(t, wants("r"), subject.Claims[2].Spec)
	subject.Claims[2].Spec.Devices.Requests[0].Name = "changed"
	require.Equal(t, wants("r"), state.Templates[0].Spec.Spec, "a claim is a copy")
}

func TestSubject(t *testing.T) {
	state := subjects()
	for argument, want := range map[string]string{
		"claim/train":             "ResourceClaim ns/train",
		"resourceclaims/mine":     "ResourceClaim ns/mine",
		"t":                       "ResourceClaim ns/t",
		"ResourceClaimTemplate/t": "ResourceClaim ns/t",
		"resourceclaim.resource.k8s.io/train-made-abcde": "ResourceClaim ns/train-made-abcde",
	} {
		subject, err := state.Subject(argument, "ns")
		require.NoError(t, err, argument)
		require.Equal(t, want, subject.String())
	}
	for argument, want := range map[string]string{
		"train":        "several objects have the name \"train\"",
		"far":          "there is no pod, claim or template \"far\" in namespace \"ns\"",
		"node/n":       "must be NAME or pod/NAME, claim/NAME, template/NAME",
		"pod/":         "must be NAME or",
		"pod/lost":     "pod ns/lost: there is no ResourceClaim \"nobody\"",
		"pod/lost-too": "pod ns/lost-too: there is no ResourceClaimTemplate \"nothing\"",
		"":             "there are 3 pods, pending claims and templates",
	} {
		_, err := state.Subject(argument, "ns")
		require.ErrorContains(t, err, want, argument)
	}
}

// TestTheOnlySubject checks the subject of an empty argument: the only pod. Without a pod, it is the only pending claim.
func TestTheOnlySubject(t *testing.T) {
	objects := &clusterstate.Objects{Claims: []*resourceapi.ResourceClaim{
		owning("mine", resourceapi.DeviceRequestAllocationResult{Device: "a"}), {ObjectMeta: named("ns", "pending")},
	}}
	subject, err := clusterstate.New(objects).Subject("", "elsewhere")
	require.NoError(t, err)
	require.Equal(t, "ResourceClaim ns/pending", subject.String())
	objects.Pods = []*corev1.Pod{{ObjectMeta: named("ns", "p")}}
	subject, err = clusterstate.New(objects).Subject("", "elsewhere")
	require.NoError(t, err)
	require.Equal(t, "Pod ns/p", subject.String())
}

func wanting(name string, resources ...corev1.ResourceName) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: named("ns", name)}
	list := corev1.ResourceList{}
	for _, r := range resources {
		list[r] = resource.MustParse("2")
	}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list}}}
	return pod
}

// TestClassOfAnExtendedResource checks that State and kube-scheduler choose the same class for an extended resource.
func TestClassOfAnExtendedResource(t *testing.T) {
	now := time.Now()
	var classes []*resourceapi.DeviceClass
	for name, age := range map[string]time.Duration{"old": time.Hour, "new-b": 0, "new-a": 0, "older": 2 * time.Hour} {
		class := &resourceapi.DeviceClass{ObjectMeta: named("", name)}
		class.CreationTimestamp = metav1.NewTime(now.Add(-age))
		class.Spec.ExtendedResourceName = ptr.To("example.com/mla")
		classes = append(classes, class)
	}
	known := extendedresourcecache.NewExtendedResourceCache(klog.Background())
	var handler cache.ResourceEventHandler = known
	for _, class := range classes {
		handler.OnAdd(class, true)
	}
	for _, name := range []corev1.ResourceName{"example.com/mla", "deviceclass.resource.kubernetes.io/new-a"} {
		state := clusterstate.New(&clusterstate.Objects{Classes: classes, Pods: []*corev1.Pod{wanting("p", name)}})
		subject, err := state.Subject("pod/p", "ns")
		require.NoError(t, err)
		require.Equal(t, known.GetDeviceClass(name).Name, subject.Claims[0].Spec.Devices.Requests[0].Exactly.DeviceClassName)
	}
	state := clusterstate.New(&clusterstate.Objects{Classes: classes, Pods: []*corev1.Pod{wanting("p", "example.com/other", "cpu")}})
	subject, err := state.Subject("pod/p", "ns")
	require.NoError(t, err)
	require.Empty(t, subject.Claims)
}

// TestExtendedClaimOnNodes checks that the claim for a node omits a resource that a device plugin on the node provides.
func TestExtendedClaimOnNodes(t *testing.T) {
	class := func(name string) *resourceapi.DeviceClass {
		return &resourceapi.DeviceClass{ObjectMeta: named("", name), Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/" + name)}}
	}
	state := clusterstate.New(&clusterstate.Objects{
		Classes: []*resourceapi.DeviceClass{class("a"), class("b")},
		Pods:    []*corev1.Pod{wanting("p", "example.com/a", "example.com/b")},
	})
	subject, err := state.Subject("pod/p", "ns")
	require.NoError(t, err)
	for provided, want := range map[corev1.ResourceName][]string{
		"":              {"container-0-request-0", "container-0-request-1"},
		"example.com/a": {"container-0-request-1"},
		"example.com/b": {"container-0-request-0"},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{provided: resource.MustParse("8")}}}
		var got []string
		for _, request := range state.PendingOn(subject, node)[0].Spec.Devices.Requests {
			got = append(got, request.Name)
		}
		require.Equal(t, want, got)
	}
	both := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"example.com/a": resource.MustParse("8"), "example.com/b": resource.MustParse("8"),
	}}}
	require.Empty(t, state.PendingOn(subject, both))
}

// TestExtendedClaimThatWasMade checks that State uses the claim that the pod's status names, if there is one.
func TestExtendedClaimThatWasMade(t *testing.T) {
	pod := wanting("p", "deviceclass.resource.kubernetes.io/c")
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "made"}
	objects := &clusterstate.Objects{
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: named("", "c")}}, Pods: []*corev1.Pod{pod},
		Claims: []*resourceapi.ResourceClaim{{ObjectMeta: named("ns", "made")}},
	}
	subject, err := clusterstate.New(objects).Subject("pod/p", "ns")
	require.NoError(t, err)
	require.Equal(t, []string{"ns/made"}, names(subject.Claims))
	objects.Claims = nil
	_, err = clusterstate.New(objects).Subject("pod/p", "ns")
	require.ErrorContains(t, err, `there is no ResourceClaim "made"`)
}
