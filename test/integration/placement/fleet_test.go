// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/fleet"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/test/internal/env"
)

// A scene is a hub with a namespace for the Placements of one test.
type scene struct {
	*hub
	namespace string
}

// newScene creates a namespace for a test. If the name is empty, the name is generated. No ManagedClusterSet is bound to the
// namespace.
func newScene(t testing.TB, namespace string) scene {
	t.Helper()
	s := scene{shared, namespace}
	if namespace == "" {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
		require.NoError(t, s.Create(t.Context(), object))
		s.namespace = object.Name
	} else {
		s.open(t, namespace)
	}
	return s
}

// newFleet is like newScene, and binds a ManagedClusterSet of all clusters to the namespace.
func newFleet(t testing.TB, namespace string) scene {
	t.Helper()
	s := newScene(t, namespace)
	s.set(t, "global", clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	})
	s.bind(t, "global")
	return s
}

// open creates the namespace if it does not exist.
func (s scene) open(t testing.TB, namespace string) {
	t.Helper()
	err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// create creates an object and deletes it after the test.
func (s scene) create(t testing.TB, object client.Object) {
	t.Helper()
	require.NoError(t, s.Create(t.Context(), object))
	s.cleanUp(t, object)
}

// cleanUp deletes an object after the test. For a Placement it also deletes the PlacementDecisions, which would affect other
// tests.
func (s scene) cleanUp(t testing.TB, object client.Object) {
	t.Cleanup(func() {
		ctx := context.Background()
		require.NoError(t, client.IgnoreNotFound(s.Delete(ctx, object)))
		if _, placed := object.(*clusterv1beta1.Placement); !placed && object.GetObjectKind().GroupVersionKind().Kind != "Placement" {
			return
		}
		of := []client.DeleteAllOfOption{client.InNamespace(object.GetNamespace()), client.MatchingLabels{clusterv1beta1.PlacementLabel: object.GetName()}}
		require.NoError(t, s.DeleteAllOf(ctx, &clusterv1beta1.PlacementDecision{}, of...))
	})
}

// change applies mutate to an object and patches it.
func change[T client.Object](t testing.TB, s scene, object T, mutate func(T)) {
	t.Helper()
	require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	require.NoError(t, env.Change(t.Context(), s, object, mutate))
}

// changeStatus applies mutate to an object and patches its status.
func changeStatus[T client.Object](t testing.TB, s scene, object T, mutate func(T)) {
	t.Helper()
	require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopyObject().(client.Object)
	mutate(object)
	require.NoError(t, s.Status().Patch(t.Context(), object, client.MergeFrom(before)))
}

func (s scene) set(t testing.TB, name string, selector clusterv1beta2.ManagedClusterSelector) {
	t.Helper()
	s.create(t, &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector},
	})
}

// exclusive is a selector for clusters whose label names the set. A cluster can be in only one such set.
var exclusive = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}

func (s scene) bind(t testing.TB, set string) *clusterv1beta2.ManagedClusterSetBinding {
	t.Helper()
	object := &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
	s.create(t, object)
	return object
}

// traits are the properties of a cluster in a test, besides its name.
type traits struct {
	set       string
	labels    map[string]string
	claims    map[string]string
	version   string
	taints    []clusterv1.Taint
	available metav1.ConditionStatus
	allocate  clusterv1.ResourceList
}

// join creates a cluster with the name and the traits. All other fields are as in a generated cluster.
func (s scene) join(t testing.TB, name string, has traits) *clusterv1.ManagedCluster {
	t.Helper()
	object := generated(0)
	object.Name, object.Labels = name, map[string]string{"name": name}
	maps.Copy(object.Labels, has.labels)
	if has.set != "" {
		object.Labels[clusterv1beta2.ClusterSetLabel] = has.set
	}
	object.Spec.Taints = has.taints
	object.Status.Version.Kubernetes = has.version
	object.Status.ClusterClaims = claimsOf(has.claims)
	if has.available != "" {
		meta.FindStatusCondition(object.Status.Conditions, clusterv1.ManagedClusterConditionAvailable).Status = has.available
	}
	if has.allocate != nil {
		object.Status.Allocatable = has.allocate
	}
	s.admit(t, object)
	return object
}

// claimsOf returns ClusterClaims with these values, sorted by name.
func claimsOf(values map[string]string) []clusterv1.ManagedClusterClaim {
	var result []clusterv1.ManagedClusterClaim
	for _, name := range slices.Sorted(maps.Keys(values)) {
		result = append(result, clusterv1.ManagedClusterClaim{Name: name, Value: values[name]})
	}
	return result
}

// generated returns the i-th cluster of the generated fleet, without fields that the API server sets.
func generated(i int) *clusterv1.ManagedCluster {
	object := fleet.Cluster(i, time.Now())
	object.UID, object.ResourceVersion, object.Generation, object.Finalizers, object.ManagedFields = "", "", 0, nil, nil
	return object
}

// admit creates a cluster and writes its status.
func (s scene) admit(t testing.TB, object *clusterv1.ManagedCluster) {
	t.Helper()
	status := object.Status
	s.create(t, object)
	object.Status = status
	require.NoError(t, s.Status().Update(t.Context(), object))
}

// place creates a Placement. spec is YAML.
func (s scene) place(t testing.TB, name, spec string) *clusterv1beta1.Placement {
	t.Helper()
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: name, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"},
	}}
	object.Spec = specOf(t, spec)
	s.create(t, object)
	return object
}

func specOf(t testing.TB, text string) clusterv1beta1.PlacementSpec {
	t.Helper()
	var result clusterv1beta1.PlacementSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &result))
	return result
}

// score writes one value of an AddOnPlacementScore of a cluster. It uses the client by.
func (s scene) score(t testing.TB, by client.Client, cluster, resource, name string, value int32) *clusterv1alpha1.AddOnPlacementScore {
	t.Helper()
	object := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: resource}}
	s.open(t, cluster)
	if err := by.Create(t.Context(), object); apierrors.IsAlreadyExists(err) {
		require.NoError(t, by.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	} else {
		require.NoError(t, err)
		s.cleanUp(t, object)
	}
	object.Status.Scores = slices.DeleteFunc(object.Status.Scores, func(item clusterv1alpha1.AddOnPlacementScoreItem) bool { return item.Name == name })
	object.Status.Scores = append(object.Status.Scores, clusterv1alpha1.AddOnPlacementScoreItem{Name: name, Value: value})
	require.NoError(t, by.Status().Update(t.Context(), object))
	return object
}

// decisions returns the cluster decisions of a Placement, in the order of its PlacementDecisions.
func (s scene) decisions(t testing.TB, name string) []clusterv1beta1.ClusterDecision {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	require.NoError(t, s.List(t.Context(), &list, client.InNamespace(s.namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: name}))
	byName := map[string][]clusterv1beta1.ClusterDecision{}
	for _, object := range list.Items {
		byName[object.Name] = object.Status.Decisions
	}
	result := []clusterv1beta1.ClusterDecision{}
	for i := range len(byName) {
		result = append(result, byName[fmt.Sprintf("%s-decision-%d", name, i+1)]...)
	}
	return result
}

func (s scene) selected(t testing.TB, name string) []string {
	t.Helper()
	names := []string{}
	for _, decision := range s.decisions(t, name) {
		names = append(names, decision.ClusterName)
	}
	return names
}

// requireSelected waits until a Placement selects exactly these clusters and its status has their number.
func (s scene) requireSelected(t testing.TB, name string, want ...string) {
	t.Helper()
	env.Becomes(t, append([]string{}, want...), func() []string { return s.selected(t, name) })
	env.Becomes(t, len(want), func() int { return int(s.live(t, name).Status.NumberOfSelectedClusters) })
}

func (s scene) live(t testing.TB, name string) *clusterv1beta1.Placement {
	t.Helper()
	result := &clusterv1beta1.Placement{}
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, result))
	return result
}

// condition returns status and reason of a condition as a line, and its message. It returns "" if the condition is not for the
// current generation.
func (s scene) condition(t testing.TB, name, kind string) (line, message string) {
	t.Helper()
	live := s.live(t, name)
	c := meta.FindStatusCondition(live.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration != live.Generation {
		return "", ""
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason), c.Message
}

// requireCondition waits until a condition has the wanted status and reason, and its message contains all texts.
func (s scene) requireCondition(t testing.TB, name, kind, want string, texts ...string) {
	t.Helper()
	env.Becomes(t, append([]string{want}, texts...), func() []string {
		line, message := s.condition(t, name, kind)
		got := []string{line}
		for _, text := range texts {
			if strings.Contains(message, text) {
				got = append(got, text)
			} else {
				got = append(got, message)
			}
		}
		return got
	})
}

// requireSatisfied waits until a Placement has as many clusters as it requests.
func (s scene) requireSatisfied(t testing.TB, name string) {
	t.Helper()
	s.requireCondition(t, name, clusterv1beta1.PlacementConditionSatisfied, "True "+wellknown.ReasonScheduled)
}

// notes returns the notes of a Placement's events with the reason.
func (s scene) notes(t testing.TB, name, reason string) []string {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, s.List(t.Context(), &list, client.InNamespace(s.namespace)))
	uid := s.live(t, name).UID
	result := []string{}
	for _, e := range list.Items {
		if e.Regarding.UID == uid && e.Reason == reason {
			result = append(result, e.Note)
		}
	}
	slices.Sort(result)
	return result
}

// account creates the ServiceAccount whose RBAC rights determine the sets that are bound to the namespace.
func (s scene) account(t testing.TB) *corev1.ServiceAccount {
	t.Helper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: binding.ServiceAccount}}
	s.create(t, object)
	return object
}

// parallel calls do with the numbers from 0 to n-1, several at a time.
func parallel(t testing.TB, n int, do func(i int) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	require.NoError(t, group.Wait())
}

// cleanUpAll deletes all objects of a kind after the test.
func (s scene) cleanUpAll(t testing.TB, kind client.Object) {
	t.Cleanup(func() { require.NoError(t, s.DeleteAllOf(context.Background(), kind)) })
}

func setAvailable(c *clusterv1.ManagedCluster, status metav1.ConditionStatus) {
	meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable).Status = status
}
