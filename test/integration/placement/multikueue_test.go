// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/placement/multikueue"
	"github.com/celset/celset/test/internal/env"
)

// A queue is a namespace with Workloads, on a hub with the kinds of Kueue. Kueue does not run: the test writes the status of
// Workloads as Kueue would.
type queue struct{ scene }

// round is the interval of nomination rounds, longer than the test. The test simulates later rounds by an earlier time of the
// quota reservation.
const round = time.Hour

func newQueue(t *testing.T) queue {
	t.Helper()
	q := queue{newFleet(t, "")}
	q.InstallKueue(t)
	q.Manage(t, q.ConfigOf(t, env.Placement.Name), manager.Options{Cache: multikueue.Cache(controller.Cache())}, func(mgr manager.Manager) error {
		return multikueue.Add(mgr, multikueue.Options{Round: round, SkipNameValidation: true})
	})
	q.apply(t, `{kind: MultiKueueConfig, metadata: {name: workers}, spec: {clusters: [south, west, east]}}`)
	q.apply(t, `{kind: AdmissionCheck, metadata: {name: multikueue}, spec: {controllerName: kueue.x-k8s.io/multikueue, parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: workers}}}`)
	q.apply(t, `{kind: AdmissionCheck, metadata: {name: other}, spec: {controllerName: example.com/other}}`)
	return q
}

func (q queue) object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	object.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	return object
}

// apply applies an object, and deletes it after the test.
func (q queue) apply(t *testing.T, text string) {
	t.Helper()
	object := q.object(t, text)
	require.NoError(t, q.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership))
	q.cleanUp(t, object)
}

// submit creates a Workload with the labels and annotations of a job.
func (q queue) submit(t *testing.T, name, metadata string) {
	t.Helper()
	object := q.object(t, `{kind: Workload, metadata: {`+metadata+`}, spec: {queueName: q, podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}}`)
	object.SetNamespace(q.namespace)
	object.SetName(name)
	q.create(t, object)
}

// reserved returns the status of a Workload. Its quota was reserved since ago, and its admission check has the state.
func reserved(since time.Duration, check, state string) string {
	return reservedAt(time.Now().Add(-since).UTC().Format(time.RFC3339), check, state)
}

func reservedAt(at, check, state string) string {
	return strings.NewReplacer("AT", at, "CHECK", check, "STATE", state).Replace(`{
  conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved, message: "", lastTransitionTime: AT}],
  admission: {clusterQueue: q, podSetAssignments: [{name: main, count: 1}]},
  admissionChecks: [{name: CHECK, state: STATE, message: "", lastTransitionTime: AT}]}`)
}

// kueue writes the status of a Workload by server-side apply, as Kueue does.
func (q queue) kueue(t *testing.T, name, status string) error {
	t.Helper()
	object := q.object(t, `{kind: Workload, status: `+status+`}`)
	object.SetNamespace(q.namespace)
	object.SetName(name)
	return q.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kueue-admission"), client.ForceOwnership)
}

// merge is like kueue, but uses a merge patch, as Kueue does with its feature gate WorkloadRequestUseMergePatch.
func (q queue) merge(t *testing.T, name, status string) {
	t.Helper()
	patch, err := yaml.YAMLToJSON([]byte("{status: " + status + "}"))
	require.NoError(t, err)
	require.NoError(t, q.Status().Patch(t.Context(), q.workload(t, name), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kueue")))
}

func (q queue) workload(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	object := q.object(t, `{kind: Workload}`)
	require.NoError(t, q.Get(t.Context(), client.ObjectKey{Namespace: q.namespace, Name: name}, object))
	return object
}

func (q queue) nominated(t *testing.T, name string) []string {
	t.Helper()
	clusters, _, err := unstructured.NestedStringSlice(q.workload(t, name).Object, "status", "nominatedClusterNames")
	require.NoError(t, err)
	return clusters
}

func (q queue) requireNominated(t *testing.T, name string, want ...string) {
	t.Helper()
	env.Becomes(t, want, func() []string { return q.nominated(t, name) })
}

// requireEvent waits for an event about a Workload that contains the text.
func (q queue) requireEvent(t *testing.T, name, text string) {
	t.Helper()
	uid := q.workload(t, name).GetUID()
	env.Becomes(t, true, func() bool {
		var list eventsv1.EventList
		require.NoError(t, q.List(t.Context(), &list, client.InNamespace(q.namespace)))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.UID == uid && strings.Contains(e.Note, text) })
	})
}

// placedAs returns the label that names a Placement.
func placedAs(name string) string {
	return "labels: {" + clusterv1beta1.PlacementLabel + ": " + name + "}"
}

// TestMultiKueue checks that the controller nominates the clusters in the decision of a Workload's Placement, the best cluster
// first.
func TestMultiKueue(t *testing.T) {
	q := newQueue(t)
	clusters := map[string]*clusterv1.ManagedCluster{}
	for name, sets := range map[string]int32{"east": 3, "west": 2, "north": 9} {
		clusters[name] = q.join(t, name, traits{})
		q.score(t, q, name, "celset-sets", "gpu.example.com/block8/8/now", sets)
	}
	q.place(t, "sets", `
prioritizerPolicy:
  mode: Exact
  configurations:
  - {scoreCoordinate: {type: AddOn, addOn: {resourceName: celset-sets, scoreName: gpu.example.com/block8/8/now}}, weight: 1}
decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 1}}
sortBy: Score
scoreRateLimit: 1s
`)
	q.requireSelected(t, "sets", "north", "east", "west")

	// The clusters north and south are not nominated: north is no worker cluster, and south is not in the decision. The
	// controller ignores a Workload without quota.
	q.submit(t, "job", placedAs("sets"))
	require.NoError(t, q.kueue(t, "job", reserved(0, "multikueue", "Pending")))
	q.requireNominated(t, "job", "east")
	before := q.workload(t, "job").Object["status"].(map[string]any)
	require.Len(t, before["conditions"], 1, "what Kueue applied is kept")
	require.Len(t, before["admissionChecks"], 1)
	require.NotEmpty(t, before["admission"])

	// The quota was reserved more than one round ago, and east has not admitted the Workload. So the next cluster is nominated,
	// too.
	q.submit(t, "late", placedAs("sets"))
	require.NoError(t, q.kueue(t, "late", reserved(round*3/2, "multikueue", "Pending")))
	q.requireNominated(t, "late", "east", "west")

	// The decision has a new order. East stays nominated, because Kueue rejects an admission by a cluster that is not
	// nominated, and east might be about to admit.
	q.score(t, q, "west", "celset-sets", "gpu.example.com/block8/8/now", 4)
	q.requireNominated(t, "job", "west", "east")
	q.requireNominated(t, "late", "west", "east")

	// When Kueue assigns a cluster to a Workload, it clears the nomination. The controller must not nominate again.
	require.NoError(t, q.kueue(t, "job", strings.TrimSuffix(reserved(round*3/2, "multikueue", "Ready"), "}")+", clusterName: west}"))
	require.Empty(t, q.nominated(t, "job"))

	// Kueue evicts the Workload because west has rejected it. After a new quota reservation, the controller must nominate again.
	require.NoError(t, q.kueue(t, "job", `{conditions: [{type: QuotaReserved, status: "False", reason: Evicted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`))
	require.Empty(t, q.nominated(t, "job"))
	require.NoError(t, q.kueue(t, "job", reserved(0, "multikueue", "Pending")))
	q.requireNominated(t, "job", "west")
	require.Equal(t, before["admission"], q.workload(t, "job").Object["status"].(map[string]any)["admission"])
}

// TestMultiKueueLeavesOthersAlone creates Workloads that are not for MultiKueue, that name no Placement, or whose Placement is
// missing. The controller must nominate clusters only for Workloads that name no Placement: all worker clusters.
func TestMultiKueueLeavesOthersAlone(t *testing.T) {
	q := newQueue(t)
	pending := reserved(0, "multikueue", "Pending")
	for name, w := range map[string]struct{ metadata, status string }{
		"hostile":   {placedAs("missing"), reservedAt(`"2026-01-01T00:00:00+99:99"`, "multikueue", "Pending")},
		"other":     {"", reserved(0, "other", "Pending")},
		"retried":   {"", reserved(0, "multikueue", "Retry")},
		"finished":  {"", strings.Replace(pending, "conditions: [", `conditions: [{type: Finished, status: "True", reason: Done, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}, `, 1)},
		"evicted":   {"", strings.Replace(pending, "conditions: [", `conditions: [{type: Evicted, status: "True", reason: Deactivated, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}, `, 1)},
		"component": {`annotations: {kueue.x-k8s.io/component-workload-index: "1"}`, pending},
		"first":     {`annotations: {kueue.x-k8s.io/component-workload-index: "0"}`, pending},
		"missing":   {placedAs("missing"), pending},
		"all":       {"", pending},
	} {
		q.submit(t, name, w.metadata)
		require.NoError(t, q.kueue(t, name, w.status), name)
	}
	q.submit(t, "merged", placedAs("missing"))
	q.merge(t, "merged", pending)
	q.requireNominated(t, "all", "south", "west", "east")
	q.requireNominated(t, "first", "south", "west", "east")
	q.requireEvent(t, "missing", "Placement "+q.namespace+"/missing does not exist; create it")
	for _, name := range []string{"other", "retried", "finished", "evicted", "component", "missing", "merged", "hostile"} {
		require.Empty(t, q.nominated(t, name), name)
	}

	// The missing Placement is created, but its decision contains no worker cluster. Then the test adds its cluster to the
	// MultiKueueConfig.
	q.join(t, "far", traits{})
	q.place(t, "missing", `{}`)
	q.requireEvent(t, "missing", "selects none of the worker clusters [south west east]")
	long := make([]string, 20)
	for i := range long {
		long[i] = fmt.Sprintf("%s-%02d", strings.Repeat("n", 60), i)
	}
	q.apply(t, `{kind: MultiKueueConfig, metadata: {name: workers}, spec: {clusters: [`+strings.Join(long, ", ")+`]}}`)
	q.requireNominated(t, "all", long...)
	q.submit(t, "long", placedAs("missing"))
	require.NoError(t, q.kueue(t, "long", pending))
	q.requireEvent(t, "long", "selects none of the worker clusters ["+long[0])
	for _, test := range []struct{ workers, decided []string }{
		{[]string{"far", "south"}, []string{"far"}},
		{[]string{"south"}, nil},
		{[]string{"south", "far"}, []string{"far"}},
	} {
		q.apply(t, `{kind: MultiKueueConfig, metadata: {name: workers}, spec: {clusters: [`+strings.Join(test.workers, ", ")+`]}}`)
		q.requireNominated(t, "all", test.workers...)
		q.requireNominated(t, "missing", test.decided...)
		q.requireNominated(t, "merged", test.decided...)
	}
	q.merge(t, "merged", `{clusterName: far, nominatedClusterNames: null}`)
	require.Empty(t, q.nominated(t, "merged"))
}

// TestMultiKueueWaitsForTheRestOfADecision acts as the controller of a Placement, and writes its PlacementDecisions one after
// the other. A cluster that moves from one PlacementDecision to another must stay nominated in between.
func TestMultiKueueWaitsForTheRestOfADecision(t *testing.T) {
	q := newQueue(t)
	// The test decides this Placement itself, so celset must ignore it.
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: q.namespace, Name: "swapped"}}
	q.create(t, placement)
	decide := func(name, cluster string) {
		decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: q.namespace, Name: name, Labels: map[string]string{clusterv1beta1.PlacementLabel: placement.Name},
		}}
		if q.Get(t.Context(), client.ObjectKeyFromObject(decision), decision) != nil {
			q.create(t, decision)
		}
		changeStatus(t, q.scene, decision, func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: cluster}}
		})
	}
	decide("swapped-decision-1", "east")
	decide("swapped-decision-2", "west")
	changeStatus(t, q.scene, placement, func(p *clusterv1beta1.Placement) {
		p.Status.NumberOfSelectedClusters = 2
		p.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{
			{Decisions: []string{"swapped-decision-1"}}, {DecisionGroupIndex: 1, Decisions: []string{"swapped-decision-2"}},
		}
	})
	q.submit(t, "job", placedAs("swapped"))
	require.NoError(t, q.kueue(t, "job", reserved(0, "multikueue", "Pending")))
	q.requireNominated(t, "job", "east")

	// Now east is in no PlacementDecision. Once the later Workload is nominated, the controller has seen this state.
	decide("swapped-decision-1", "west")
	require.NoError(t, q.kueue(t, "job", strings.TrimSuffix(reserved(round*3/2, "multikueue", "Pending"), "}")+", nominatedClusterNames: [east]}"))
	q.submit(t, "later", "")
	require.NoError(t, q.kueue(t, "later", reserved(0, "multikueue", "Pending")))
	q.requireNominated(t, "later", "south", "west", "east")
	require.Equal(t, []string{"east"}, q.nominated(t, "job"))
	decide("swapped-decision-2", "east")
	q.requireNominated(t, "job", "west", "east")
}
