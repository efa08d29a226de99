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

	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// watch connects the fairness guard to the scheduler's queue and loop. It wraps the function that returns the next pod to the
// loop.
func watch(ctx context.Context, config *schedulerconfig.CompletedConfig, scheduler *scheduler.Scheduler, guard *guard.Guard, hub hubOptions) error {
	measured, err := metrics.Default()
	if err != nil {
		return err
	}
	if hub.cluster != "" {
		sets, err := hub.publisher(config.ComponentConfig.Profiles, measured)
		if err != nil {
			return err
		}
		go sets.Run(ctx)
	}
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
	wrap(scheduler, guard)
	return nil
}

// wrap makes the scheduler notify the fairness guard when a scheduling cycle begins or ends and when an attempt fails.
func wrap(scheduler *scheduler.Scheduler, guard *guard.Guard) {
	next := scheduler.NextEntity
	scheduler.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		guard.CycleEnded()
		entity, err := next(logger)
		if err == nil && entity != nil {
			began(guard, entity)
		}
		return entity, err
	}
	fail := scheduler.FailureHandler
	scheduler.FailureHandler = func(ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		// The failure handler puts the pod back into the queue, and the queue asks the guard about the pod. So the guard must
		// know of the failure before.
		guard.Failed(pod.Pod, !status.IsRejected())
		fail(ctx, profile, pod, status, nominating, start)
	}
}

// began notifies the fairness guard of the namespace of the next pod or group. All pods of a group are in one namespace.
func began(guard *guard.Guard, entity framework.QueuedEntityInfo) {
	entity.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
		if info.Pod == nil {
			return true
		}
		guard.CycleBegan(info.Pod.Namespace)
		return false
	})
}
