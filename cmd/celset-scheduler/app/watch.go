// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/watchdog"
)

const (
	// journalSuffix makes, of the name of the lease of leader election, the name of the one in
	// which attempts that take long are written down, in the same namespace. So schedulers that
	// would not elect one of them have a journal each: one that is about the attempts of two is
	// of no use to either.
	journalSuffix = "-attempts"
	// readTimeout bounds the request before the first cycle.
	readTimeout = 5 * time.Second
	// interrupted is the reason of an event.
	interrupted = "SchedulingInterrupted"
)

// watch shows the scheduler to guard and watchdog: the loop that it runs takes what is next
// from a function that can be wrapped, as can the one that tries a pod.
func watch(ctx context.Context, config *schedulerconfig.CompletedConfig, scheduler *scheduler.Scheduler, guard *guard.Guard, timeout time.Duration) error {
	measured, err := metrics.Default()
	if err != nil {
		return err
	}
	dog := watchdog.New(clock.RealClock{}, timeout, measured.ObserveStuckCycle)
	measured.WatchCycle(dog.Age)
	if timeout > 0 {
		config.Authorization.Authorizer = newLivez(config.Authorization.Authorizer, dog.Check)
	}
	election := config.ComponentConfig.LeaderElection
	journal := watchdog.NewJournal(clock.RealClock{},
		config.Client.CoordinationV1().Leases(election.ResourceNamespace), election.ResourceName+journalSuffix, guard.Current)
	w := &watched{guard: guard, dog: dog, journal: journal, recorder: config.EventBroadcaster.NewRecorder("celset-scheduler")}
	guard.Watch(scheduler.SchedulingQueue)
	if elected := config.LeaderElection; elected != nil {
		held := &lease{Interface: elected.Lock, duration: elected.LeaseDuration}
		elected.Lock = held
		guard.Lead(held.check)
	}
	w.wrap(ctx, scheduler)
	return nil
}

// watched is what is to be told.
type watched struct {
	guard    *guard.Guard
	dog      *watchdog.Watchdog
	journal  *watchdog.Journal
	recorder events.EventRecorder
	begun    bool
}

func (w *watched) wrap(ctx context.Context, scheduler *scheduler.Scheduler) {
	next := scheduler.NextEntity
	scheduler.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		w.dog.Ended()
		w.guard.CycleEnded()
		if !w.begun {
			// This process schedules: it is the leader, if there is one.
			w.begun = true
			w.putOff(ctx)
			go w.dog.Run(ctx, w.journal)
		}
		entity, err := next(logger)
		if err == nil && entity != nil {
			w.began(entity)
		}
		return entity, err
	}
	try := scheduler.SchedulePod
	scheduler.SchedulePod = func(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo) (result schedulerResult, err error) {
		// A group of pods is tried in one cycle.
		w.dog.Began(pod.Pod)
		return try(ctx, profile, state, pod)
	}
}

type schedulerResult = scheduler.ScheduleResult

// began tells of the first pod of what is next.
func (w *watched) began(entity framework.QueuedEntityInfo) {
	entity.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
		if info.Pod == nil {
			return true
		}
		w.guard.CycleBegan(info.Pod.Namespace)
		w.dog.Began(info.Pod)
		return false
	})
}

// putOff has pods wait that were being tried when a scheduler ended, so that others are tried
// before them. If that is not known, everything is tried in its order.
func (w *watched) putOff(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	logger := klog.FromContext(ctx)
	all, err := w.journal.Read(ctx)
	if err != nil {
		logger.Error(err, "It may not be known which pods were being tried when a scheduler ended")
	}
	for _, attempt := range all {
		message := attempt.Message()
		w.guard.Suspect(attempt.Keys(), attempt.Ends, attempt.Until.Time, message)
		if !attempt.IsNew {
			continue
		}
		logger.Info("Pod is put off", "pod", klog.KRef(attempt.Namespace, attempt.Name), "until", attempt.Until, "why", message)
		pod := &v1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: attempt.Namespace, Name: attempt.Name, UID: attempt.UID},
		}
		w.recorder.Eventf(pod, nil, v1.EventTypeWarning, interrupted, "Scheduling", "%s", message)
	}
}
