// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watching

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func newStore(trim func(object) (object, error)) (*store, *int) {
	changes := 0
	return &store{trim: trim, changed: func() { changes++ }, entries: map[key]entry{}}, &changes
}

func named(name, version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, ResourceVersion: version}
}

// TestStoreNotesOnlyChanges checks that a new resource version alone is no change, and that the stored object then stays.
func TestStoreNotesOnlyChanges(t *testing.T) {
	s, changes := newStore(trimmed)
	first := &corev1.Node{ObjectMeta: named("a", "1")}
	for _, step := range []struct {
		do   func() error
		want int
	}{
		{func() error { return s.Add(first) }, 1},
		{func() error { return s.Update(&corev1.Node{ObjectMeta: named("a", "2")}) }, 1},
		{func() error { return s.Replace([]any{&corev1.Node{ObjectMeta: named("a", "3")}}, "3") }, 1},
		{func() error {
			heartbeat := []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
			return s.Update(&corev1.Node{ObjectMeta: named("a", "4"), Status: corev1.NodeStatus{Conditions: heartbeat}})
		}, 1},
		{func() error {
			return s.Update(&corev1.Node{ObjectMeta: named("a", "5"), Spec: corev1.NodeSpec{Unschedulable: true}})
		}, 2},
		{func() error { return s.Delete(&corev1.Node{ObjectMeta: named("b", "6")}) }, 2},
		{func() error { return s.Replace(nil, "7") }, 3},
		{func() error { s.clear(); return nil }, 3},
	} {
		require.NoError(t, step.do())
		require.Equal(t, step.want, *changes)
		if step.want == 1 {
			s.each(func(o object) { require.Same(t, first, o) })
		}
	}
}

// TestWarningsAboutObjects checks the warnings about objects that can't be used as they are.
func TestWarningsAboutObjects(t *testing.T) {
	s, _ := newStore(trimmed)
	huge := &resourceapi.ResourceSlice{ObjectMeta: named("s", "1"), Spec: resourceapi.ResourceSliceSpec{Devices: []resourceapi.Device{{
		Name: "d", Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("1e40")}},
	}}}}
	require.NoError(t, s.Add(huge))
	warnings := s.each(func(object) {})
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "ResourceSlice s: ignored")
	require.NoError(t, s.Delete(huge))
	require.Empty(t, s.each(func(object) {}))

	s, _ = newStore(toAttributes)
	require.NoError(t, s.Add(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "wrong"}, "spec": "text"}}))
	warnings = s.each(func(object) { require.Fail(t, "the object is left out") })
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "DeviceAttributes wrong is left out: ")

	s, _ = newStore(func(object) (object, error) { return nil, errors.New("broken") })
	require.NoError(t, s.Add(&corev1.Node{}))
	require.Error(t, s.Add("no object"))
	require.Error(t, s.Delete("no object"))
}

func TestPodsThatAreKept(t *testing.T) {
	claim := []corev1.PodResourceClaim{{Name: "c"}}
	gpu := []corev1.Container{{Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}}}}
	for _, test := range []struct {
		name          string
		spec          corev1.PodSpec
		shown         bool
		kept, hasName bool
	}{
		{"waits", corev1.PodSpec{SchedulerName: "s"}, true, true, true},
		{"waits elsewhere", corev1.PodSpec{SchedulerName: "s"}, false, false, false},
		{"runs", corev1.PodSpec{SchedulerName: "s", NodeName: "n"}, true, true, false},
		{"runs elsewhere", corev1.PodSpec{SchedulerName: "s", NodeName: "n", ResourceClaims: claim}, false, true, false},
		{"runs with a claim", corev1.PodSpec{SchedulerName: "s", NodeName: "n", ResourceClaims: claim}, true, true, true},
		{"runs with an extended resource", corev1.PodSpec{SchedulerName: "s", NodeName: "n", Containers: gpu}, true, true, true},
	} {
		kept := Kept(&corev1.Pod{ObjectMeta: named(test.name, "1"), Spec: *test.spec.DeepCopy()}, test.shown)
		require.Equal(t, test.kept, kept != nil, test.name)
		if kept == nil {
			continue
		}
		require.Equal(t, test.hasName, kept.Spec.SchedulerName != "", test.name)
		require.Equal(t, test.spec.NodeName, kept.Spec.NodeName)
		for _, c := range kept.Spec.Containers {
			require.Empty(t, c.Image)
		}
	}
}
