// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
)

// fill creates pods of a PriorityClass that use all units of a node. It returns the names of the pods.
func (s *scene) fill(node, prefix, class string) []string {
	s.Helper()
	var names []string
	for i := range units {
		names = append(names, fmt.Sprint(prefix, "-", i))
		s.occupy(names[i], node, i, class)
	}
	return names
}

// TestNoOthersAreEvictedWhileClaimsAreFreed pauses the controller that deallocates the claims of deleted pods. The preemptor
// can't be bound meanwhile, but the scheduler must not evict the pods on the second node, which have a higher priority than the
// victims.
func TestNoOthersAreEvictedWhileClaimsAreFreed(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t, "slow", 2, f)
			victims := s.fill(s.Nodes[0], "victim", "p10")
			s.fill(s.Nodes[1], "other", "p20")
			s.run("job", f.all(s.driver), of("p50"))
			s.ending(victims...)
			s.tryAgain(2, "job")
			s.requireEvicted(victims...)

			s.whileClaimsStay(func() {
				s.end(victims...)
				s.tryAgain(3, "job")
				s.requireEvicted(victims...)
			})
			s.RequireRunning(t, "job")
			require.Equal(t, s.Nodes[0], s.Pod(t, "job").Spec.NodeName)
			s.requireEvicted(victims...)
			s.requireNothingHeld()
			s.requireNoneInVain()
		})
	}
}

// TestClaimsThatAreFreedOneByOne ends the victims one after the other. In between, the scheduler tries the preemptor. It must
// not evict other pods.
func TestClaimsThatAreFreedOneByOne(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t, "single", 2, f)
			victims := s.fill(s.Nodes[0], "victim", "p10")
			s.fill(s.Nodes[1], "other", "p20")
			s.run("job", f.all(s.driver), of("p50"))
			s.ending(victims...)
			s.run("thief", f.unit(s.driver, 0), of("n50"))
			s.run("stock", f.unit(s.driver, 0), of("p10"), by(s.stock))
			for _, victim := range victims[1:] {
				s.end(victim)
				s.RequireFreed(t, victim)
				s.tryAgain(1, "job")
				s.requireEvicted(victims...)
			}
			s.requireKept("thief", "stock")
			s.end(victims[0])
			s.RequireRunning(t, "job")
			s.requireKept("thief", "stock")
			s.requireEvicted(victims...)
			s.requireNothingHeld()
			s.requireNoneInVain()
		})
	}
}

// paused is locked while the controllers are paused, so that only one test pauses them at a time.
var paused sync.Mutex

// whileClaimsStay calls f while the controllers are paused, so that claims of deleted pods stay allocated.
func (s *scene) whileClaimsStay(f func()) {
	s.Helper()
	paused.Lock()
	defer paused.Unlock()
	controllers := s.Running(controlplane.KubeControllerManager)
	require.NoError(s, controllers.Pause())
	defer func() { require.NoError(s, controllers.Continue()) }()
	f()
}

// TestPreemptorIsDeletedWhileVictimsAreChosen deletes the preemptor while the scheduler waits for an extender that reviews the
// victims. The extender answers after the scheduler has seen the deletion. No pod must be evicted.
func TestPreemptorIsDeletedWhileVictimsAreChosen(t *testing.T) {
	e := newExtender(t)
	s := newScene(t, "chosen", 1, wholeDevices, e.install)
	victims := s.fill(s.Nodes[0], "victim", "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	env.Receive(t, "a request to the extender", e.asked)
	s.end("job")
	s.awaitLog("Delete event for unscheduled pod", "job")
	close(e.answer)
	s.requireNobodyEvicted(victims)
}

// requireNobodyEvicted requires that none of the victims was evicted, and that no devices are held.
func (s *scene) requireNobodyEvicted(victims []string) {
	s.Helper()
	// Wait until a later pod is bound: the scheduling cycle that chose the victims has ended by then.
	s.pod("later", nil, of("p10"))
	s.RequireRunning(s, "later")
	s.run("next", s.form.unit(s.driver, 0), of("p10"))
	s.requireKept("next")
	s.requireEvicted()
	for _, name := range victims {
		require.Nil(s, s.Pod(s, name).DeletionTimestamp, name)
	}
	s.requireNothingHeld()
}

// An extender is a scheduler extender for preemption. It accepts all proposed victims.
type extender struct {
	server *httptest.Server
	// asked receives a value for each request of the scheduler. The extender responds after answer is closed.
	asked  chan struct{}
	answer chan struct{}
}

func newExtender(t *testing.T) *extender {
	t.Helper()
	e := &extender{asked: make(chan struct{}, 1), answer: make(chan struct{})}
	e.server = httptest.NewServer(http.HandlerFunc(e.preempt))
	t.Cleanup(e.server.Close)
	return e
}

func (e *extender) preempt(w http.ResponseWriter, r *http.Request) {
	var args extenderv1.ExtenderPreemptionArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case e.asked <- struct{}{}:
	default:
	}
	select {
	case <-e.answer:
	case <-r.Context().Done():
	}
	_ = json.NewEncoder(w).Encode(extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: args.NodeNameToMetaVictims})
}

// install adds the extender to the configuration of a scheduler.
func (e *extender) install(config *schedulerconfig.KubeSchedulerConfiguration) {
	extender := schedulerconfig.Extender{URLPrefix: e.server.URL, PreemptVerb: "preempt", NodeCacheCapable: true}
	extender.HTTPTimeout.Duration = env.Patience
	config.Extenders = append(config.Extenders, extender)
}

// TestPreemptorIsDeletedBeforeTheFirstEviction blocks the scheduler's first eviction request, and deletes the preemptor. No pod
// must be evicted.
func TestPreemptorIsDeletedBeforeTheFirstEviction(t *testing.T) {
	s := newScene(t, "unwanted", 1, wholeDevices)
	victims := s.fill(s.Nodes[0], "victim", "p10")
	first := s.crossing.Stop(0, crossing.IsEviction)
	s.run("job", s.form.all(s.driver), of("p50"))
	env.Receive(t, "the first eviction", first.Reached())
	s.end("job")
	s.awaitLog("Delete event for unscheduled pod", "job")
	first.Release()
	s.awaitLog("Async Preemption finished completely", "job")
	s.requireNobodyEvicted(victims)
}

// TestPreemptorIsDeletedBetweenEvictions needs four evictions. It blocks one of the first three, and then deletes the
// preemptor. The last victim must not be evicted.
func TestPreemptorIsDeletedBetweenEvictions(t *testing.T) {
	s := newScene(t, "between", 1, wholeDevices)
	s.fill(s.Nodes[0], "victim", "p10")
	third := s.crossing.Stop(units-2, crossing.IsDeletion)
	s.run("job", s.form.all(s.driver), of("p50"))
	env.Receive(t, "the third eviction", third.Reached())
	s.end("job")
	s.awaitLog("Delete event for unscheduled pod", "job")
	third.Release()
	s.awaitLog("Async Preemption finished completely", "job")
	require.Len(t, s.evicted(), units-1)
	s.requireNothingHeld()
}

// TestKilledBetweenEvictions kills the scheduler after it has evicted three of four victims. The next scheduler must evict the
// fourth victim, and no other pod.
func TestKilledBetweenEvictions(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t, "killed", 2, f)
			victims := s.fill(s.Nodes[0], "victim", "p10")
			s.fill(s.Nodes[1], "other", "p20")
			s.run("a-thief", f.unit(s.driver, 0), of("n50"), by(s.stock))
			s.run("thief", f.unit(s.driver, 0), of("p10"))
			s.requireKept("a-thief", "thief")

			last := s.crossing.Stop(units-1, crossing.IsDeletion)
			s.run("job", f.all(s.driver), of("p50"))
			env.Receive(t, "the last eviction", last.Reached())
			s.kill()
			s.start()
			env.Eventually(t, "the fourth pod is evicted", func(context.Context) (string, error) {
				if evicted := s.evicted(); len(evicted) < units {
					return fmt.Sprintf("%v are evicted", evicted), nil
				}
				return "", nil
			})
			s.requireEvicted(victims...)
			s.requireKept("a-thief", "thief")
			s.end(victims...)
			s.RequireRunning(t, "job")
			s.requireKept("a-thief", "thief")
			s.requireEvicted(victims...)
			s.requireNothingHeld()
			s.requireNoneInVain()
		})
	}
}

// TestRefusedEvictionIsTriedAgain makes the API server reject the last of four evictions. The scheduler must retry it, and must
// not evict the equally suitable pods on the second node.
func TestRefusedEvictionIsTriedAgain(t *testing.T) {
	s := newScene(t, "refused", 2, wholeDevices)
	victims := s.fill(s.Nodes[0], "victim", "p10")
	s.fill(s.Nodes[1], "other", "p20")
	last := s.crossing.Refuse(units-1, crossing.IsDeletion)
	s.run("job", s.form.all(s.driver), of("p50"))
	env.Receive(t, "the last eviction", last.Reached())
	evicted := s.evicted()
	require.Len(t, evicted, units-1)
	require.Subset(t, victims, evicted)
	s.tryAgain(2, "job")
	s.requireEvicted(evicted...)
	last.Release()
	env.Eventually(t, "the fourth pod is evicted", func(ctx context.Context) (string, error) {
		if evicted := s.evicted(); len(evicted) < units {
			return fmt.Sprintf("%v are evicted", evicted), s.poke(ctx)
		}
		return "", nil
	})
	s.requireEvicted(victims...)
	s.end(victims...)
	s.RequireRunning(t, "job")
	s.requireEvicted(victims...)
	s.requireNothingHeld()
	s.requireNoneInVain()
}

// TestKilledWhileVictimsEnd kills the scheduler while victims end, and creates pods of another profile before the next
// scheduler starts. They must not get the held devices.
func TestKilledWhileVictimsEnd(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t, "restart", 1, f)
			s.occupy("victim", s.Nodes[0], 0, "p10")
			s.run("job", f.all(s.driver), of("p50"))
			s.ending("victim")
			s.kill()
			// The scheduler tries pods of one priority in the order of their names, so the name begins with "a-".
			s.run("a-thief", f.unit(s.driver, 1), of("n50"), by(s.stock))
			s.pod("b-joiner", []string{"victim"}, of("n50"), by(s.stock))
			s.run("thief", f.unit(s.driver, 2), of("p10"))
			s.start()
			s.requireKept("a-thief", "b-joiner", "thief")
			s.end("victim")
			s.RequireRunning(t, "job")
			s.requireKept("a-thief", "b-joiner", "thief")
			s.requireEvicted("victim")
			s.requireNothingHeld()
			s.requireNoneInVain()
		})
	}
}

// TestEvictionsAreBounded has victims that never end. After two seconds, the scheduler gives up the hold on a node, and may
// evict the pods of another node for the same preemptor. It may do so at most hold.MaxTries times.
func TestEvictionsAreBounded(t *testing.T) {
	cases.OnlyNightly(t, "waits for a minute while nothing is to happen")
	s := newScene(t, "bounded", hold.MaxTries+2, wholeDevices, withArgs(t, func(args *configv1alpha1.DynamicResourcesCELArgs) {
		args.DevicePreemption = &configv1alpha1.DevicePreemption{HoldTimeout: &metav1.Duration{Duration: time.Second}}
	}))
	for i, node := range s.Nodes {
		name := fmt.Sprint("victim-", i)
		s.run(name, s.form.unit(s.driver, 0), of("p10"), on(node), graceOf(1))
		s.RequireRunning(t, name)
	}
	s.run("job", s.form.all(s.driver), of("p50"))
	env.Eventually(t, "another pod is evicted when the first one has not ended in time", func(ctx context.Context) (string, error) {
		if evicted := s.evicted(); len(evicted) < 2 {
			return fmt.Sprintf("%v are evicted", evicted), s.poke(ctx)
		}
		return "", nil
	})
	for range 6 {
		s.tryAgain(10, "job")
	}
	require.LessOrEqual(t, len(s.evicted()), hold.MaxTries)
}
