// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
)

// TestFailedBindingKeepsAHold makes the API server reject a write of the preemptor's binding. No other pod may get the devices
// before the preemptor is bound.
func TestFailedBindingKeepsAHold(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]func(crossing.Write) bool{"reservation": crossing.IsReservation, "binding": crossing.IsBinding} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "unbound", 1, wholeDevices)
			s.occupy("victim", s.Nodes[0], 0, "p10")
			s.run("job", s.form.all(s.driver), of("p50"))
			s.ending("victim")
			refused := s.crossing.Refuse(0, refuses)
			s.end("victim")
			env.Receive(t, "what binds the pod", refused.Reached())
			s.run("thief", s.form.unit(s.driver, 2), of("n50"))
			s.run("stock", s.form.unit(s.driver, 1), of("p10"), by(s.stock))
			s.requireKept("thief", "stock")
			s.tryAgain(1, "job")
			require.Equal(t, corev1.ConditionTrue, s.record("job").Status)
			refused.Release()
			s.RequireRunning(t, "job")
			s.requireUnbound("thief", "stock")
			s.requireEvicted("victim")
			s.requireNothingHeld()
			s.requireNoneInVain()
		})
	}
}

// TestChangedClassDoesNotEndAHold changes a class repeatedly while a victim is ending, so that the scheduler has to compile the
// preemptor's claims again. The hold must not end.
func TestChangedClassDoesNotEndAHold(t *testing.T) {
	s := newScene(t, "prepared", 2, wholeDevices)
	s.fill(s.Nodes[1], "other", "p20")
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	s.run("thief", s.form.unit(s.driver, 1), of("n50"), on(s.Nodes[0]))
	classes := s.Client().ResourceV1().DeviceClasses()
	for i := range 10 {
		class, err := classes.Get(t.Context(), s.driver, metav1.GetOptions{})
		require.NoError(t, err)
		class.Spec.Selectors[0].CEL.Expression += fmt.Sprintf(" && %d == %d", i, i)
		_, err = classes.Update(t.Context(), class, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, s.poke(t.Context()))
	}
	s.requireKept("thief")
	s.tryAgain(1, "job")
	require.Equal(t, corev1.ConditionTrue, s.record("job").Status)
	s.end("victim")
	s.RequireRunning(t, "job")
	s.requireKept("thief")
	s.requireEvicted("victim")
	s.requireNothingHeld()
	s.requireNoneInVain()
}

// TestShareDoesNotEndAHold makes the preemptor's namespace use up its share of the scheduler's time while a victim is ending
// and pods of another namespace wait. The hold must not end.
func TestShareDoesNotEndAHold(t *testing.T) {
	s := newScene(t, "share", 2, wholeDevices, withArgs(t, func(args *configv1alpha1.DynamicResourcesCELArgs) {
		args.Share = &configv1alpha1.Share{Percent: ptr.To[int32](1), Burst: &metav1.Duration{Duration: time.Millisecond}}
	}))
	s.fill(s.Nodes[1], "other", "p20")
	s.occupy("victim", s.Nodes[0], 0, "p10")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	s.run("thief", s.form.unit(s.driver, 1), of("n50"), on(s.Nodes[0]))
	tenant := &env.Lab{Env: s.Env, Namespace: env.Create(t, s.Client().CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenant-"}}).Name}
	for i := range 20 {
		name := fmt.Sprint("tenant-", i)
		tenant.CreateClaim(t, name, s.form.unit(s.driver, 1)...)
		pod := env.Pod(name, s.ours, name)
		on(s.Nodes[0])(pod)
		tenant.CreatePodAsIs(t, pod)
		s.run(fmt.Sprint("light-", i), s.form.unit(s.driver, 1), of("p10"), on(s.Nodes[0]))
	}
	env.Eventually(t, "a pod is refused for the share", func(ctx context.Context) (string, error) {
		if s.metric("celset_scheduler_refused_scheduling_attempts_total", "share") == 0 {
			return "there is none", s.poke(ctx)
		}
		return "", nil
	})
	s.tryAgain(1, "job")
	require.Equal(t, corev1.ConditionTrue, s.record("job").Status)
	s.requireUnbound("thief")
	s.end("victim")
	s.RequireRunning(t, "job")
	s.requireUnbound("thief")
	s.requireEvicted("victim")
	s.requireNoneInVain()
}

// TestSlowVictimsAreTheLastChoice creates a possible victim with a grace period of a year. The scheduler must choose another
// victim if there is one. Otherwise it may evict this pod, but must not hold the devices for a year.
func TestSlowVictimsAreTheLastChoice(t *testing.T) {
	s := newScene(t, "slowly", 2, wholeDevices, withArgs(t, func(args *configv1alpha1.DynamicResourcesCELArgs) {
		args.DevicePreemption = &configv1alpha1.DevicePreemption{HoldTimeout: &metav1.Duration{Duration: time.Second}}
	}))
	const year = 365 * 24 * 3600
	s.run("slow", s.form.unit(s.driver, 0), of("p10"), on(s.Nodes[0]), graceOf(year))
	s.RequireRunning(t, "slow")
	s.run("quick", s.form.unit(s.driver, 0), of("p20"), on(s.Nodes[1]), graceOf(1))
	s.RequireRunning(t, "quick")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("quick")
	s.end("quick")
	s.RequireRunning(t, "job")
	s.requireEvicted("quick")

	s.run("next", s.form.all(s.driver), of("p30"))
	s.ending("slow")
	s.run("small", s.form.unit(s.driver, 1), of("p10"))
	s.requireKept("small")
	env.Eventually(t, "the hold ends", func(context.Context) (string, error) {
		return map[bool]string{false: "it goes on"}[s.record("next").Reason == "TimedOut"], nil
	})
	s.RequireRunning(t, "small")
}

// TestOverdueVictims has deleted pods that a finalizer keeps after the end of their grace period. The scheduler must evict
// other pods instead. If there are no others, it must evict none, and the preemptor waits.
func TestOverdueVictims(t *testing.T) {
	cases.OnlyNightly(t, "waits half a minute until a pod is overdue")
	s := newScene(t, "overdue", 2, wholeDevices)
	for _, node := range []int{0, 1} {
		name := fmt.Sprint("stuck-", node)
		s.run(name, s.form.unit(s.driver, 0), of("p10"), on(s.Nodes[node]), finalized, graceOf(1))
		s.RequireRunning(t, name)
	}
	s.occupy("quick", s.Nodes[1], 1, "p20")
	s.end("stuck-0", "stuck-1")
	time.Sleep(time.Until(s.Pod(t, "stuck-1").DeletionTimestamp.Add(31 * time.Second)))
	// The first node has no other victim.
	s.run("waits", s.form.all(s.driver), of("p50"), on(s.Nodes[0]))
	s.tryAgain(1, "waits")
	s.requireEvicted()
	// On the second node, the pod fits on the second device. The pod on the first device does not end.
	s.run("job", s.form.unit(s.driver, 1), of("p50"), on(s.Nodes[1]))
	s.ending("quick")
	s.end("quick")
	s.RequireRunning(t, "job")
	s.requireEvicted("quick")
}
