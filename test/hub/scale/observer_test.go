// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// An observer watches all PlacementDecisions. After each event it checks that the expected clusters are in them.
type observer struct {
	hub *hub

	mutex sync.Mutex
	// objects maps names to PlacementDecisions, as of the last event.
	objects map[string]*clusterv1beta1.PlacementDecision
	// expected maps a Placement to the clusters that must always be in its PlacementDecisions. missing maps it to the expected
	// clusters that were absent after some event.
	expected, missing map[string]sets.Set[string]
	// events is the number of events so far. last is the time of the last event.
	events int
	last   time.Time
	// reselected is the time of the last event that changed the clusters of a PlacementDecision. Events that change only scores
	// don't count.
	reselected time.Time
	// confirmed is the number of events that changed the annotation Confirmed. A controller writes it after its start, even if
	// nothing else changes.
	confirmed int
	broken    error
}

// observe starts a watch that ends with the test.
func (h *hub) observe(t testing.TB) *observer {
	t.Helper()
	o := &observer{hub: h, objects: map[string]*clusterv1beta1.PlacementDecision{}}
	o.expect(nil)
	watching, err := h.Watch(t.Context(), &clusterv1beta1.PlacementDecisionList{}, client.InNamespace(namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
	})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range watching.ResultChan() {
			o.see(e)
		}
	}()
	t.Cleanup(func() {
		watching.Stop()
		<-done
	})
	return o
}

// observeStore is like observe, but watches etcd instead of the API server. Tests that restart the API server need it, because
// they would lose events.
func (h *hub) observeStore(t testing.TB) *observer {
	t.Helper()
	o := &observer{hub: h, objects: map[string]*clusterv1beta1.PlacementDecision{}}
	o.expect(nil)
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{h.Running(controlplane.Etcd).Endpoint()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	prefix := "/registry/" + clusterv1beta1.GroupName + "/placementdecisions/" + namespace + "/"
	versions := store.Watch(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for response := range versions {
			for _, event := range response.Events {
				o.see(storedEvent(event))
			}
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, store.Close())
		<-done
	})
	return o
}

// storedEvent converts an event of etcd to the corresponding watch event of an API server.
func storedEvent(event *clientv3.Event) watch.Event {
	kind, pair := watch.Modified, event.Kv
	if event.Type == clientv3.EventTypeDelete {
		kind, pair = watch.Deleted, event.PrevKv
	}
	decision := &clusterv1beta1.PlacementDecision{}
	if err := json.Unmarshal(pair.Value, decision); err != nil {
		return watch.Event{Type: watch.Error, Object: &metav1.Status{Message: err.Error()}}
	}
	decision.ResourceVersion = strconv.FormatInt(event.Kv.ModRevision, 10)
	return watch.Event{Type: kind, Object: decision}
}

func (o *observer) see(e watch.Event) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	decision, ok := e.Object.(*clusterv1beta1.PlacementDecision)
	if !ok {
		o.broken = fmt.Errorf("%s: %v", e.Type, e.Object)
		return
	}
	o.events, o.last = o.events+1, time.Now()
	if e.Type == watch.Deleted || !slices.Equal(clustersOf(o.objects[decision.Name]), clustersOf(decision)) {
		o.reselected = o.last
	}
	const key = wellknown.AnnotationConfirmed
	if before := o.objects[decision.Name]; before != nil && before.Annotations[key] != decision.Annotations[key] {
		o.confirmed++
	}
	if o.objects[decision.Name] = decision; e.Type == watch.Deleted {
		delete(o.objects, decision.Name)
	}
	name := decision.Labels[clusterv1beta1.PlacementLabel]
	if expected := o.expected[name]; expected.Len() > 0 {
		for cluster := range expected.Difference(o.selected(name)) {
			o.missing[name].Insert(cluster)
		}
	}
}

// clustersOf returns the names of the clusters in a PlacementDecision, in order. The object may be nil.
func clustersOf(object *clusterv1beta1.PlacementDecision) []string {
	var names []string
	if object != nil {
		for _, decision := range object.Status.Decisions {
			names = append(names, decision.ClusterName)
		}
	}
	return names
}

// selected returns the clusters in all PlacementDecisions of a Placement.
func (o *observer) selected(name string) sets.Set[string] {
	result := sets.New[string]()
	for _, object := range o.objects {
		if object.Labels[clusterv1beta1.PlacementLabel] == name {
			for _, d := range object.Status.Decisions {
				result.Insert(d.ClusterName)
			}
		}
	}
	return result
}

// expect sets the clusters that must always be in the PlacementDecisions of each Placement.
func (o *observer) expect(clusters map[string]sets.Set[string]) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.expected, o.missing = clusters, map[string]sets.Set[string]{}
	for name := range clusters {
		o.missing[name] = sets.New[string]()
	}
}

// catchUp waits until the observer has seen all changes that the API server lists. It returns the selected clusters of each
// Placement.
func (o *observer) catchUp(t testing.TB) map[string]sets.Set[string] {
	t.Helper()
	// Controllers may write meanwhile, so list the objects again from time to time.
	require.Eventually(t, func() bool {
		var list clusterv1beta1.PlacementDecisionList
		require.NoError(t, o.hub.List(t.Context(), &list, client.InNamespace(namespace)))
		want := map[string]string{}
		for i := range list.Items {
			want[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		for range 100 {
			if maps.Equal(want, o.versions()) {
				return true
			}
			time.Sleep(10 * time.Millisecond)
		}
		return false
	}, env.Patience, time.Millisecond)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	require.NoError(t, o.broken)
	result := map[string]sets.Set[string]{}
	for _, object := range o.objects {
		name := object.Labels[clusterv1beta1.PlacementLabel]
		if result[name] == nil {
			result[name] = o.selected(name)
		}
	}
	return result
}

// requireStayed requires that no expected cluster that is selected now was missing after any event.
func (o *observer) requireStayed(t testing.TB, now map[string]sets.Set[string]) {
	t.Helper()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for name, missing := range o.missing {
		lost := sets.List(missing.Intersection(now[name]))
		require.Empty(t, lost[:min(len(lost), 10)], "Placement %s: %d clusters that stay were in no PlacementDecision", name, len(lost))
	}
}

// quiet waits until no event has come for the duration while. It returns the number of events after the number since, and the
// time of the last event.
func (o *observer) quiet(t testing.TB, since int, while time.Duration) (events int, last time.Time) {
	t.Helper()
	require.Eventually(t, func() bool {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		events, last = o.events-since, o.last
		return events > 0 && time.Since(last) > while
	}, env.Patience, 10*time.Millisecond)
	return events, last
}

// count returns the number of events so far.
func (o *observer) count() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.events
}

// settled returns the time at which the clusters of a PlacementDecision changed for the last time.
func (o *observer) settled() time.Time {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.reselected
}

// versions maps the names of the observed objects to their resource versions.
func (o *observer) versions() map[string]string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	result := map[string]string{}
	for _, name := range slices.Collect(maps.Keys(o.objects)) {
		result[name] = o.objects[name].ResourceVersion
	}
	return result
}

// A listing holds the objects of a hub at one time.
type listing struct {
	placements []*clusterv1beta1.Placement
	decisions  []*clusterv1beta1.PlacementDecision
	snapshot   placement.Snapshot
}

type scores map[string]*clusterv1alpha1.AddOnPlacementScore

// FindScore implements [cluster.ScoreFinder] with the scores in the map.
func (s scores) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return s[namespace+"/"+name], nil
}

func (h *hub) list(t testing.TB) listing {
	t.Helper()
	var (
		placements clusterv1beta1.PlacementList
		decisions  clusterv1beta1.PlacementDecisionList
		clusters   clusterv1.ManagedClusterList
		sets       clusterv1beta2.ManagedClusterSetList
		bindings   clusterv1beta2.ManagedClusterSetBindingList
		found      clusterv1alpha1.AddOnPlacementScoreList
	)
	for _, list := range []client.ObjectList{&decisions, &placements, &clusters, &sets, &bindings, &found} {
		require.NoError(t, h.List(t.Context(), list))
	}
	byName := scores{}
	for i := range found.Items {
		byName[found.Items[i].Namespace+"/"+found.Items[i].Name] = &found.Items[i]
	}
	result := listing{placements: pointers(placements.Items), decisions: pointers(decisions.Items)}
	result.snapshot = placement.Snapshot{
		Clusters: pointers(clusters.Items), ClusterSets: pointers(sets.Items), Bindings: pointers(bindings.Items), Scores: byName,
	}
	return result
}

func pointers[T any](items []T) []*T {
	result := make([]*T, len(items))
	for i := range items {
		result[i] = &items[i]
	}
	return result
}

// difference describes where PlacementDecisions and statuses of Placements differ from the decision of a new Scheduler. It
// returns "" if they agree. If oblivious is set, that Scheduler does not get the earlier decisions. Then only the groups of the
// clusters are compared, because their order within a group depends on earlier decisions.
func (l listing) difference(t testing.TB, oblivious bool) string {
	t.Helper()
	scheduler, err := placement.NewScheduler(placement.Config{})
	require.NoError(t, err)
	snapshot := l.snapshot
	snapshot.Decisions = placement.NewDecisions(l.decisions...)
	if oblivious {
		snapshot.Decisions = nil
	}
	var out strings.Builder
	for _, object := range l.placements {
		result, err := scheduler.Schedule(t.Context(), object, &snapshot, time.Now())
		require.NoError(t, err)
		// Forget the earlier decision, whose clusters the Scheduler would keep.
		scheduler.Forget(object.UID)
		has := slices.DeleteFunc(slices.Clone(l.decisions), func(d *clusterv1beta1.PlacementDecision) bool {
			return d.Labels[clusterv1beta1.PlacementLabel] != object.Name
		})
		if oblivious {
			require.NotNil(t, result.Decision, object.Name)
			if wanted := groupsOf(result.Decision.Objects(object)); !cmp.Equal(wanted, groupsOf(has)) {
				fmt.Fprintf(&out, "%s: groups (-want +got):\n%s", object.Name, cmp.Diff(wanted, groupsOf(has)))
			}
			continue
		}
		if result.Decision != nil {
			for _, step := range placement.Updates(has, result.Decision.Objects(object)) {
				fmt.Fprintf(&out, "%s: %s is to be changed (delete: %t)\n", object.Name, step.Object.Name, step.Delete)
			}
		}
		if wanted := result.ApplyTo(object.Status); !equality.Semantic.DeepEqual(wanted, object.Status) {
			fmt.Fprintf(&out, "%s: status (-want +got):\n%s", object.Name, cmp.Diff(wanted, object.Status))
		}
	}
	return out.String()
}

// groupsOf maps the index and name of each decision group to its sorted clusters.
func groupsOf(objects []*clusterv1beta1.PlacementDecision) map[string][]string {
	result := map[string][]string{}
	for _, object := range objects {
		group := object.Labels[clusterv1beta1.DecisionGroupIndexLabel] + " " + object.Labels[clusterv1beta1.DecisionGroupNameLabel]
		result[group] = append(result[group], clustersOf(object)...)
	}
	for group := range result {
		slices.Sort(result[group])
	}
	return result
}

// requireSettled waits until the decisions on the hub equal the decisions of a new Scheduler.
func (h *hub) requireSettled(t testing.TB) listing {
	t.Helper()
	for deadline := time.Now().Add(env.Patience); ; time.Sleep(200 * time.Millisecond) {
		listed := h.list(t)
		difference := listed.difference(t, false)
		if difference == "" {
			return listed
		}
		if time.Now().After(deadline) {
			t.Fatal(difference[:min(len(difference), 10_000)])
		}
	}
}
