// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/component-base/featuregate"
	fwk "k8s.io/kube-scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// schedulers are those of this process. It may have one after the other, as scheduler_perf does: what was
// held in the first is nothing to the second, and who listens to the first's informers hears nothing of the
// second's.
type schedulers struct {
	mutex  sync.Mutex
	latest *schedulerParts
}

// schedulerParts is what one scheduler has, with all of its profiles.
type schedulerParts struct {
	informers informers.SharedInformerFactory
	profiles  *profiles
	run       sync.Once
}

// of are those that the handle is of.
func (s *schedulers) of(handle fwk.Handle, guard *guard.Guard, gates featuregate.FeatureGate) *schedulerParts {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if factory := handle.SharedInformerFactory(); s.latest == nil || s.latest.informers != factory {
		s.latest = &schedulerParts{informers: factory, profiles: newProfiles(guard, gates)}
	}
	return s.latest
}

// add makes the plugin of one profile, and starts for the first one what all need.
func (s *schedulerParts) add(ctx context.Context, args runtime.Object, handle fwk.Handle, measured *metrics.Metrics) (fwk.Plugin, error) {
	gates := s.profiles.gates
	s.profiles.inBackground = true
	s.profiles.preempts = gates.Enabled(DRADevicePreemption)
	pl, err := newPlugin(ctx, args, handle, plfeature.NewSchedulerFeaturesFromGates(gates), gates.Enabled(DRACELDeviceConstraint), measured, s.profiles)
	if err != nil {
		return nil, err
	}
	s.run.Do(func() {
		if err = limitQuantities(s.informers, handle.EventRecorder, measured); err != nil {
			return
		}
		go s.profiles.guard.Run(ctx)
		if pl.exchange == nil || !pl.enabled {
			return
		}
		if err = s.profiles.asked.watch(ctx, s.informers); err == nil {
			go newFragmentationMonitor(handle, pl.features, measured, s.profiles).run(ctx, s.profiles.guard.Begun())
		}
	})
	return pl, err
}
