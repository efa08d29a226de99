// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/inventory"
	"github.com/celset/celset/placement/turns"
)

// model is the controller without a manager, in a synctest bubble. Evaluations take the same fake time on any machine.
type model struct {
	*reconciler
	t       *testing.T
	client  client.WithWatch
	queues  map[bool]workqueue.TypedRateLimitingInterface[reconcile.Request]
	workers sync.WaitGroup

	mutex sync.Mutex
	// takes is the duration of one evaluation.
	takes time.Duration
	// busy has the Placements that a worker is deciding now.
	busy map[types.NamespacedName]bool
	// turns counts the results of turns by queue: true is the queue of expensive Placements.
	turns map[bool]map[string]int
	// prepared has the Placements whose expressions were compiled, in the order of their decisions.
	prepared []types.NamespacedName
}

// Now implements [cel.Timer]. It is called at the start and the end of an evaluation.
func (m *model) Now() time.Time {
	m.mutex.Lock()
	takes := m.takes
	m.mutex.Unlock()
	time.Sleep(takes / 2)
	return time.Now()
}
func (m *model) ObserveCompilation(string, bool, error)  {}
func (m *model) ObserveEvaluation(string, uint64, error) {}
func (m *model) ObserveDuration(string, time.Duration)   {}
func (m *model) ObserveWriting() (end func(error))       { return func(error) {} }
func (m *model) ObserveTurn(turn string, slow bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.turns[slow][turn]++
}

// newModel returns a model with the given number of clusters in the set "global" and one cluster in the set "small".
func newModel(t *testing.T, clusters int, takes time.Duration) *model {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, AddToScheme(scheme))
	m := &model{
		t: t, takes: takes, busy: map[types.NamespacedName]bool{}, turns: map[bool]map[string]int{false: {}, true: {}},
		queues: map[bool]workqueue.TypedRateLimitingInterface[reconcile.Request]{},
		client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterv1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}).Build(),
	}
	environment, err := cluster.NewEnvironment(cel.Config{Observer: m})
	must(t, err)
	timeouts := Timeouts{}.orDefaults()
	scheduler, err := newScheduler(placement.Config{Environment: environment}, timeouts)
	must(t, err)
	m.reconciler = &reconciler{
		hub:    hub{client: m.client, reader: m.client, inventory: inventory.ManagedClusters{}, ledger: newLedger()},
		events: &events.FakeRecorder{}, scheduler: scheduler, records: newRecords(timeouts), observer: m, now: time.Now,
	}
	m.clusters.collect = func(ctx context.Context) ([]*clusterv1.ManagedCluster, error) {
		return m.inventory.Clusters(ctx, m.client)
	}
	m.scores.collect = func(ctx context.Context) (*scores, error) { return collectScores(ctx, m.client) }
	for i := range clusters {
		m.join(fmt.Sprintf("c%03d", i), "global")
	}
	m.join("small", "small")
	for _, name := range []string{"global", "small"} {
		must(t, m.client.Create(t.Context(), &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	return m
}

// join creates a cluster in a set. Its annotation is so long that an evaluation checks its deadline while it iterates.
func (m *model) join(name, set string) {
	must(m.t, m.client.Create(m.t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{clusterv1beta2.ClusterSetLabel: set},
		Annotations: map[string]string{"list": strings.Repeat("a,", 300) + "a"},
	}}))
}

// place creates a Placement that selects clusters of one set.
func (m *model) place(namespace, name, set string) types.NamespacedName {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(key.String()), Generation: 1, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"},
	}}
	object.Spec.ClusterSets = []string{set}
	object.Spec.Predicates = predicates(`managedCluster.metadata.annotations["list"].split(",").all(x, x == "a")`)
	must(m.t, m.client.Create(m.t.Context(), object))
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set}}
	must(m.t, client.IgnoreAlreadyExists(m.client.Create(m.t.Context(), binding)))
	return key
}

// start starts the workers. stop ends them. The test fails if two workers decide the same Placement at the same time.
func (m *model) start() (stop func()) {
	for slow, lane := range map[bool]*lane{false: &m.usual, true: &m.slow} {
		queue := turns.NewQueue("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
		m.queues[slow] = queue
		must(m.t, lane.source().Start(m.t.Context(), queue))
	}
	for range DefaultWorkers {
		m.workers.Go(func() { m.work(false) })
	}
	m.workers.Go(func() { m.work(true) })
	return func() {
		m.queues[false].ShutDown()
		m.queues[true].ShutDown()
		m.workers.Wait()
	}
}

func (m *model) work(slow bool) {
	w, queue := worker{reconciler: m.reconciler, slow: slow}, m.queues[slow]
	for {
		request, shutdown := queue.Get()
		if shutdown {
			return
		}
		end := func() {}
		if m.records.named(request.NamespacedName).slow == slow {
			end = m.begin(request.NamespacedName)
		}
		wasPrepared := m.isPrepared(request.NamespacedName)
		result, err := w.Reconcile(m.t.Context(), request)
		if wasPrepared {
			m.mutex.Lock()
			m.prepared = append(m.prepared, request.NamespacedName)
			m.mutex.Unlock()
		}
		end()
		switch {
		case err != nil:
			m.t.Error(err)
		case result.RequeueAfter > 0:
			queue.AddAfter(request, result.RequeueAfter)
		}
		queue.Done(request)
	}
}

func (m *model) isPrepared(key types.NamespacedName) bool {
	object := &clusterv1beta1.Placement{}
	return m.client.Get(m.t.Context(), key, object) == nil && m.scheduler.Prepared(object)
}

func (m *model) begin(key types.NamespacedName) (end func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.busy[key] {
		m.t.Error(key, "is decided by two at once")
	}
	m.busy[key] = true
	return func() {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.busy[key] = false
	}
}

// change updates a stored Placement, increments its generation, and queues it.
func (m *model) change(key types.NamespacedName, mutate func(*clusterv1beta1.Placement)) {
	object := &clusterv1beta1.Placement{}
	must(m.t, m.client.Get(m.t.Context(), key, object))
	object.Generation++
	mutate(object)
	must(m.t, m.client.Update(m.t.Context(), object))
	m.queue(key)
}

func (m *model) queue(key types.NamespacedName) { m.usual.add(reconcile.Request{NamespacedName: key}) }

func (m *model) take(takes time.Duration) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.takes = takes
}

// condition returns the status and the message of a condition. It returns "" before the first decision.
func (m *model) condition(key types.NamespacedName, kind string) string {
	object := &clusterv1beta1.Placement{}
	must(m.t, m.client.Get(m.t.Context(), key, object))
	if c := meta.FindStatusCondition(object.Status.Conditions, kind); c != nil {
		return string(c.Status) + " " + c.Message
	}
	return ""
}

// until waits until is returns true, and returns how long that took.
func (m *model) until(what string, is func() bool) time.Duration {
	m.t.Helper()
	start := time.Now()
	for !is() {
		if time.Since(start) > time.Hour {
			m.t.Fatal(what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(start)
}

func (m *model) decided(key types.NamespacedName) func() bool {
	return func() bool {
		return strings.HasPrefix(m.condition(key, clusterv1beta1.PlacementConditionSatisfied), "True")
	}
}

// TestExpensivePlacementsLetOthersBeDecided checks that other Placements, cheap or expensive, are decided in time while one
// namespace has many expensive Placements.
func TestExpensivePlacementsLetOthersBeDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, 80, 90*time.Millisecond)
		stop := m.start()
		defer stop()
		var hostile []types.NamespacedName
		for i := range 12 {
			hostile = append(hostile, m.place("hostile", fmt.Sprint("p", i), "global"))
			m.queue(hostile[i])
		}
		time.Sleep(time.Millisecond)
		cheap := m.place("polite", "cheap", "small")
		m.queue(cheap)
		require.Less(t, m.until("a cheap one is decided", m.decided(cheap)), time.Second)

		expensive := m.place("diligent", "expensive", "global")
		m.queue(expensive)
		took := m.until("an expensive one has an outcome", func() bool { return m.condition(expensive, wellknown.ConditionEvaluationFailed) != "" })
		require.Less(t, took, 12*time.Second, "each second turn is its own")
		require.Contains(t, m.condition(expensive, wellknown.ConditionEvaluationFailed), "True The evaluation takes longer than 5s on all clusters together; no cluster is selected")
		require.Less(t, m.until("what was evaluated is remembered", m.decided(expensive)), 15*time.Second)
		require.Contains(t, m.condition(expensive, wellknown.ConditionEvaluationFailed), "False")

		for range 10 {
			cheap := m.place("polite", fmt.Sprint("cheap", time.Now().UnixNano()), "small")
			m.queue(cheap)
			require.Less(t, m.until("others are decided", m.decided(cheap)), time.Second)
		}
		for _, key := range hostile {
			m.until("in the end all are decided", m.decided(key))
		}
		m.mutex.Lock()
		defer m.mutex.Unlock()
		require.Equal(t, 13, m.turns[false][TurnContinued], "each held a usual worker for one turn")
		require.Zero(t, m.turns[false][TurnFailed])
		require.GreaterOrEqual(t, m.turns[true][TurnFailed], 13, "seven seconds are more than five")
		require.Equal(t, 13, m.turns[true][TurnDone])
	})
}

// TestWorkersCompileNothing checks that slow compilation blocks no worker. The Placement of another namespace must be decided
// before all slow expressions are compiled.
func TestWorkersCompileNothing(t *testing.T) {
	m := newModel(t, 1, 0)
	stop := m.start()
	defer stop()
	const many = 3
	slow := strings.Repeat("||1==1", 400)
	var hostile []types.NamespacedName
	for i := range many {
		key := m.place("hostile", fmt.Sprint("p", i), "small")
		var texts []string
		for j := range 6 {
			texts = append(texts, fmt.Sprintf("%d == 1%s", 6*i+j, slow))
		}
		m.change(key, func(p *clusterv1beta1.Placement) { p.Spec.Predicates = predicates(texts...) })
		hostile = append(hostile, key)
	}
	polite := m.place("polite", "p", "small")
	m.queue(polite)
	for _, key := range append(hostile, polite) {
		m.until("all are decided in the end", m.decided(key))
		m.until("and that is noted, which it is after the status is written", func() bool {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			return slices.Contains(m.prepared, key)
		})
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	require.Less(t, slices.Index(m.prepared, polite), slices.Index(m.prepared, hostile[many-1]), "it came before all expressions of the others")
}

// TestHopelessPlacementsAreTriedLessOften checks that a Placement whose expressions always time out is retried with growing
// delays. After a change of its spec it is decided without delay.
func TestHopelessPlacementsAreTriedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, 10, 300*time.Millisecond)
		stop := m.start()
		defer stop()
		key := m.place("hostile", "p", "global")
		m.queue(key)
		m.until("it has failed", func() bool { return m.condition(key, wellknown.ConditionEvaluationFailed) != "" })
		require.Contains(t, m.condition(key, wellknown.ConditionEvaluationFailed), "c000 can't be evaluated in time: spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0] takes longer than 100ms")
		for range 3600 {
			time.Sleep(time.Second)
			m.queue(key) // as if a cluster changed every second
		}
		m.take(time.Millisecond)
		m.mutex.Lock()
		failed := m.turns[true][TurnFailed] + m.turns[false][TurnFailed]
		m.mutex.Unlock()
		require.Greater(t, failed, 10)
		require.Less(t, failed, 25, "after some minutes each five minutes")
		m.change(key, func(*clusterv1beta1.Placement) {})
		require.Less(t, m.until("it is mended", m.decided(key)), time.Second)
		require.False(t, m.records.named(key).slow)
	})
}

// TestWaitingPlacementsObey checks that removing the binding of a set deselects its clusters at once, even if the Placement
// waits after an overrun.
func TestWaitingPlacementsObey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, 10, time.Millisecond)
		stop := m.start()
		defer stop()
		key := m.place("ns", "p", "global")
		m.queue(key)
		m.until("it is decided", m.decided(key))
		m.take(time.Second)
		m.change(key, func(*clusterv1beta1.Placement) {})
		m.until("it fails", func() bool { return strings.HasPrefix(m.condition(key, wellknown.ConditionEvaluationFailed), "True") })
		selected := func() int {
			list, _, err := decisionsOf(t.Context(), m.client, key)
			must(t, err)
			return len(list[0].Status.Decisions)
		}
		require.Equal(t, 10, selected(), "the previous decision stays in effect")
		must(t, m.client.Delete(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "global"}}))
		m.queue(key)
		require.Less(t, m.until("nothing is left to choose from", func() bool { return selected() == 0 }), time.Second)
	})
}

// TestPlacementsThatAreGoneAreForgotten checks that the compiled expressions of a deleted Placement are removed, even if the
// Placement was never decided. A Placement that is deleted before its compilation is not compiled.
func TestPlacementsThatAreGoneAreForgotten(t *testing.T) {
	m := newModel(t, 1, 0)
	queue := turns.NewQueue("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
	must(t, m.usual.source().Start(t.Context(), queue))
	defer queue.ShutDown()
	remove := func(key types.NamespacedName) (former *clusterv1beta1.Placement) {
		former = &clusterv1beta1.Placement{}
		must(t, m.client.Get(t.Context(), key, former))
		must(t, m.client.Delete(t.Context(), former.DeepCopy()))
		return former
	}
	reconcileNow := func(request reconcile.Request) {
		_, err := m.reconcile(t.Context(), request)
		must(t, err)
	}
	comes := func(want reconcile.Request) {
		got, _ := queue.Get()
		require.Equal(t, want, got)
		queue.Done(got)
	}

	late := reconcile.Request{NamespacedName: m.place("ns", "late", "small")}
	reconcileNow(late)
	comes(late)
	former := remove(late.NamespacedName)
	require.True(t, m.scheduler.Prepared(former))
	reconcileNow(late)
	require.False(t, m.scheduler.Prepared(former))

	goOn := make(chan struct{})
	m.usual.background.Add("ns", reconcile.Request{}, func(context.Context) { <-goOn }, func() {})
	early := reconcile.Request{NamespacedName: m.place("ns", "early", "small")}
	reconcileNow(early)
	former = remove(early.NamespacedName)
	reconcileNow(early)
	close(goOn)
	comes(early)
	require.False(t, m.scheduler.Prepared(former))
}
