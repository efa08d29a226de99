// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement/controller"
)

// TestUnreadableObjectsOnAHub stores objects that Go can't decode, or only in hours. They contain large amounts, times with an
// offset of a hundred hours, or large group sizes. Without [controller.Guard], the client can't read any list that contains
// such an object. With it, the client reads all other objects. It also reads the object itself if it can be decoded without its
// status.
func TestUnreadableObjectsOnAHub(t *testing.T) {
	const unreadable = "2024-01-01T00:00:00+99:99"
	f := newFleet(t)
	scheme := runtime.NewScheme()
	must(t, controller.AddToScheme(scheme))
	unguarded, err := client.New(f.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)
	patch := func(object client.Object, list client.ObjectList, subresource bool, text string) {
		t.Helper()
		object = object.DeepCopyObject().(client.Object)
		patch := client.RawPatch(types.MergePatchType, []byte(text))
		if subresource {
			must(t, f.Status().Patch(t.Context(), object, patch))
		} else {
			require.Error(t, f.Patch(t.Context(), object, patch), "it is stored, and the answer can't be decoded")
		}
		require.Error(t, unguarded.List(t.Context(), list))
		must(t, f.List(t.Context(), list))
	}
	const condition = `{"status":{"conditions":[{"type":"x","status":"True","reason":"x","message":"","lastTransitionTime":"` + unreadable + `"}]}}`

	tainted, scored, reporting := f.join(t, "tainted", nil), f.join(t, "scored", nil), f.join(t, "reporting", nil)
	patch(tainted, &clusterv1.ManagedClusterList{}, false, `{"spec":{"taints":[{"key":"x","effect":"NoSelect","timeAdded":"`+unreadable+`"}]}}`)
	patch(reporting, &clusterv1.ManagedClusterList{}, true, condition)
	for _, amount := range []string{"11111111111111111111e2000000", "1e400.5", "1e16000000"} {
		must(t, f.Status().Patch(t.Context(), reporting, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"capacity":{"cpu":%q},"allocatable":{"cpu":%[1]q}}}`, amount))))
	}
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	patch(set, &clusterv1beta2.ManagedClusterSetList{}, true, condition)
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: f.name}}
	patch(binding, &clusterv1beta2.ManagedClusterSetBindingList{}, true, condition)
	f.create(t, namespaceOf(scored))
	score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: scored.Name, Name: "room"}}
	f.create(t, score)
	patch(score, &clusterv1alpha1.AddOnPlacementScoreList{}, true, `{"status":{"scores":[{"name":"free","value":50}],"validUntil":"`+unreadable+`"}}`)
	grouped := f.place(t, "grouped")
	f.requireSelected(t, grouped, "reporting", "scored")
	patch(grouped, &clusterv1beta1.PlacementList{}, false, `{"spec":{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":99999999999}}}}`)
	reported := f.place(t, "reported")
	patch(reported, &clusterv1beta1.PlacementList{}, true, condition)

	t.Run("the objects", func(t *testing.T) {
		tolerant := f.place(t, "tolerant")
		change(t, f, tolerant, func(p *clusterv1beta1.Placement) {
			p.Spec.Tolerations = []clusterv1beta1.Toleration{{Key: "x", Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: ptr.To[int64](1 << 30)}}
		})
		f.requireCondition(t, tolerant, clusterv1beta1.PlacementConditionSatisfied, "True AllDecisionsScheduled")
		f.requireSelected(t, tolerant, "reporting", "scored")
		valid := f.place(t, "valid", `managedCluster.metadata.name.endsWith("-reporting") && !has(managedCluster.status.allocatable) || managedCluster.scores("room").exists(s, s.value > 10)`)
		f.requireSelected(t, valid, "reporting")
		f.join(t, "new", nil)
		f.requireSelected(t, tolerant, "new", "reporting", "scored")
		f.requireSelected(t, reported, "new", "reporting", "scored")
		f.requireSelected(t, grouped, "reporting", "scored")
		must(t, f.Patch(t.Context(), grouped.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"decisionStrategy":null}}`))))
		f.requireSelected(t, grouped, "new", "reporting", "scored")
	})
	t.Run("others", func(t *testing.T) {
		other := newFleet(t)
		other.join(t, "a", nil)
		other.requireSelected(t, other.place(t, "p"), "a")
	})
	t.Run("a restart", func(t *testing.T) {
		config := f.RESTConfig()
		controller.Guard(config, nil)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		informers, err := cache.New(config, cache.Options{Scheme: scheme})
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- informers.Start(ctx) }()
		for _, object := range []client.Object{tainted, set, binding, score, grouped} {
			_, err := informers.GetInformer(ctx, object)
			must(t, err)
		}
		cancel()
		must(t, <-done)
	})
}
