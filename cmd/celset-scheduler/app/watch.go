// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

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

// watch shows the scheduler to guard and watchdog: the loop that it runs takes what is next
// from a function that can be wrapped, as can the one that tries a pod.
func watch(ctx context.Context, config *schedulerconfig.CompletedConfig, scheduler *scheduler.Scheduler, guard *guard.Guard, timeout time.Duration, hub hubOptions) error {
	measured, err := metrics.Default()
	if err != nil {
		return err
	}
	dog := watchdog.New(clock.RealClock{}, timeout, measured.ObserveStuckCycle)
	measured.WatchCycle(dog.Age)
	if timeout > 0 {
		config.Authorization.Authorizer = newLivez(config.Authorization.Authorizer, dog.Check)
	}
	if hub.cluster != "" {
		sets, err := hub.publisher(config.ComponentConfig.Profiles, measured)
		if err != nil {
			return err
		}
		go sets.Run(ctx)
	}
	w := &watched{guard: guard, dog: dog}
	guard.Watch(scheduler.SchedulingQueue)
	if elected := config.LeaderElection; elected != nil {
		publish, err := publisher(ctx, config)
		if err != nil {
			return err
		}
		held := &lease{Interface: elected.Lock, duration: elected.LeaseDuration, acquired: publish}
		elected.Lock = held
		guard.Lead(held.check)
	} else if err := publishUnelected(ctx, config); err != nil {
		return err
	}
	w.wrap(scheduler)
	go dog.Run(ctx)
	return nil
}

// watched is what is to be told.
type watched struct {
	guard *guard.Guard
	dog   *watchdog.Watchdog
}

func (w *watched) wrap(scheduler *scheduler.Scheduler) {
	next := scheduler.NextEntity
	scheduler.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		w.dog.Ended()
		w.guard.CycleEnded()
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
	fail := scheduler.FailureHandler
	scheduler.FailureHandler = func(ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		// The handler has the queue ask for the pod.
		w.guard.Failed(pod.Pod, !status.IsRejected())
		fail(ctx, profile, pod, status, nominating, start)
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
