// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	fwk "k8s.io/kube-scheduler/framework"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/plugin/arguments"
	"github.com/celset/celset/plugin/demand"
	"github.com/celset/celset/plugin/enrichment"
	"github.com/celset/celset/plugin/gang"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/observe"
	"github.com/celset/celset/plugin/pendingwrites"
	"github.com/celset/celset/plugin/preempt"
	"github.com/celset/celset/plugin/preparation"
)

// profiles holds the state that all profiles of a scheduler share.
type profiles struct {
	// guard is nil in programs other than celset-scheduler.
	guard *guard.Guard
	// gates holds the feature gates of the process. It is nil in programs that pass plfeature.Features instead.
	gates featuregate.FeatureGate
	// preempts is set if the scheduler evicts pods to free devices.
	preempts bool
	// inBackground is set if claims are compiled in the background, before a scheduling cycle needs them.
	inBackground bool
	// asked counts the set shapes that the claims of the cluster request.
	asked *demand.Shapes
	// withTimeout is [context.WithTimeout]. Tests replace it so that slow machines don't reach the timeout.
	withTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)

	// mutex guards parts and common.
	mutex sync.Mutex
	parts
	common arguments.Common
}

// parts holds the shared parts. Each is created when the first profile needs it.
type parts struct {
	// holds keeps devices for preemptors. It is nil if no profile preempts pods for devices.
	holds *preempt.PodHolds
	// preparing stores compiled claims. background compiles them.
	preparing  *preparation.Store
	background *preparation.Background
	// groups holds the compiled node set constraints.
	groups *gang.Groups
	writes *pendingwrites.Writes
	// enrichment adds the attributes of DeviceAttributes objects to devices. It is nil in programs other than celset-scheduler.
	enrichment *enrichment.Enrichment
}

func newProfiles(guard *guard.Guard, gates featuregate.FeatureGate) *profiles {
	return &profiles{
		guard:       guard,
		gates:       gates,
		asked:       demand.New(),
		withTimeout: context.WithTimeout,
	}
}

// holdsOf returns the shared holds, and registers the handle's profile with them.
func (p *profiles) holdsOf(ctx context.Context, measured *metrics.Metrics, handle fwk.Handle) (*preempt.PodHolds, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.holds == nil {
		holds, err := preempt.NewPodHolds(ctx, handle, measured, activator(ctx, handle))
		if err != nil {
			return nil, err
		}
		p.holds = holds
	}
	p.holds.Add(handle.ProfileName())
	return p.holds, nil
}

// turns returns the part of the guard that admits pods to scheduling cycles. Without a guard it admits every pod.
func (p *profiles) turns() guard.Turns {
	if p.guard == nil {
		return guard.Open{}
	}
	return p.guard
}

// preparingOf returns the shared store of prepared claims.
func (p *profiles) preparingOf(features plfeature.Features, manager fwk.SharedDRAManager, measured *metrics.Metrics) (*preparation.Store, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.preparing == nil {
		made, err := preparation.NewStore(features, manager, measured)
		if err != nil {
			return nil, err
		}
		p.preparing = made
	}
	return p.preparing, nil
}

// preparedOf returns the prepared claims of a profile.
func (p *profiles) preparedOf(ctx context.Context, view preparation.View, activate func(*v1.Pod)) preparation.Claims {
	if !p.inBackground {
		return preparation.AtOnce{View: view}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.background == nil {
		p.background = preparation.NewBackground(ctx)
	}
	return preparation.Ahead{View: view, Background: p.background, Activate: activate}
}

// writesOf returns the shared pending writes. Its first call starts the goroutine that confirms them until ctx is done.
func (p *profiles) writesOf(ctx context.Context, measured *metrics.Metrics, handle fwk.Handle) (*pendingwrites.Writes, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.writes == nil {
		writes, err := pendingwrites.New(pendingwrites.Config{
			Client: handle.ClientSet(), KubeConfig: handle.KubeConfig(), Leads: p.guard.Leads,
			Delivered: handle.SharedInformerFactory().Resource().V1().ResourceClaims().Informer().GetIndexer(),
			Tracker:   handle.SharedDRAManager().ResourceClaims(), Clock: clock.RealClock{},
			Settled: func(outcome pendingwrites.Outcome) { measured.ObservePendingWrite(string(outcome)) },
		})
		if err != nil {
			return nil, err
		}
		go writes.Run(ctx)
		p.writes = writes
	}
	return p.writes, nil
}

// enrichmentOf returns the shared enrichment of ResourceSlices. On the first call, it starts it until ctx is done.
func (p *profiles) enrichmentOf(ctx context.Context, features plfeature.Features, measured *metrics.Metrics, handle fwk.Handle) (*enrichment.Enrichment, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.enrichment != nil || p.guard == nil || !features.EnableDynamicResourceAllocation || handle.KubeConfig() == nil {
		return p.enrichment, nil
	}
	client, err := dynamic.NewForConfig(handle.KubeConfig())
	if err != nil {
		return nil, err
	}
	made, err := enrichment.New(ctx, enrichment.Config{
		Client: client, Slices: handle.SharedDRAManager().ResourceSlices(), Informers: handle.SharedInformerFactory(),
		Leads: p.guard.Leads, Recorder: handle.EventRecorder, Metrics: measured, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	go made.Run(ctx)
	p.enrichment = made
	return made, nil
}

// slicesOf returns the lister of ResourceSlices with the attributes of DeviceAttributes objects.
func (p *profiles) slicesOf(ctx context.Context, features plfeature.Features, measured *metrics.Metrics, handle fwk.Handle) (fwk.ResourceSliceLister, error) {
	if !features.EnableDynamicResourceAllocation {
		return nil, nil
	}
	enriched, err := p.enrichmentOf(ctx, features, measured, handle)
	if err != nil {
		return nil, err
	}
	return enriched.Manager(handle.SharedDRAManager()).ResourceSlices(), nil
}

// taintRules returns the DeviceTaintRules that the scheduler watches, or nil if it watches none.
func (p *profiles) taintRules(handle fwk.Handle) resourcelisters.DeviceTaintRuleLister {
	if p.gates == nil || !p.gates.Enabled(kubefeatures.DRADeviceTaintRules) {
		return nil
	}
	return handle.SharedInformerFactory().Resource().V1().DeviceTaintRules().Lister()
}

// groupsOf returns the shared node set constraints of all profiles.
func (p *profiles) groupsOf(ctx context.Context, measured *metrics.Metrics, handle fwk.Handle) (_ *gang.Groups, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.groups == nil {
		p.groups, err = gang.NewGroups(ctx, measured, handle)
	}
	return p.groups, err
}

// configure applies those arguments of a profile that are valid for the whole scheduler. Profiles must not contradict each
// other.
func (p *profiles) configure(profile string, args *configv1alpha1.DynamicResourcesCELArgs) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.common.Add(profile, args); err != nil {
		return err
	}
	if p.guard == nil {
		return nil
	}
	share, backOff := p.common.Share(), p.common.BackOff()
	p.guard.Configure(guard.Limits{
		SharePercent: *share.Percent, ShareBurst: share.Burst.Duration,
		BackOffInitial: backOff.Initial.Duration, BackOffMax: backOff.Max.Duration,
	})
	return nil
}

// FragmentationInterval returns the time between two counts of the cluster's free sets, 0 for never. It must be called after
// all profiles have been added.
func (p *profiles) FragmentationInterval() time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.common.FragmentationInterval()
}

// schedulers holds the parts of the latest scheduler of this process. A process may run several schedulers one after the other,
// as scheduler_perf does. Each scheduler needs its own holds, and its own handlers on its own informers.
type schedulers struct {
	mutex  sync.Mutex
	latest *schedulerParts
}

// schedulerParts holds the parts of one scheduler with all its profiles.
type schedulerParts struct {
	informers informers.SharedInformerFactory
	profiles  *profiles
	run       sync.Once
}

// of returns the parts of the scheduler that created the handle. It creates them for the first handle of a scheduler.
func (s *schedulers) of(handle fwk.Handle, guard *guard.Guard, gates featuregate.FeatureGate) *schedulerParts {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if factory := handle.SharedInformerFactory(); s.latest == nil || s.latest.informers != factory {
		s.latest = &schedulerParts{informers: factory, profiles: newProfiles(guard, gates)}
	}
	return s.latest
}

// forgetPods makes the guard drop pods that are deleted or bound, so that the guard only stores waiting pods.
func forgetPods(informers informers.SharedInformerFactory, guard *guard.Guard) error {
	_, err := informers.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, _ := before.(*v1.Pod)
			if pod, is := after.(*v1.Pod); is && pod.Spec.NodeName != "" && (old == nil || old.Spec.NodeName == "") {
				guard.Forget(pod)
			}
		},
		DeleteFunc: func(object any) {
			if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
				object = unknown.Obj
			}
			if pod, is := object.(*v1.Pod); is {
				guard.Forget(pod)
			}
		},
	})
	return err
}

// add returns the plugin for one profile. For the first profile, it also starts the shared parts.
func (s *schedulerParts) add(ctx context.Context, args runtime.Object, handle fwk.Handle, measured *metrics.Metrics) (fwk.Plugin, error) {
	gates := s.profiles.gates
	s.profiles.inBackground = true
	s.profiles.preempts = gates.Enabled(CelsetDevicePreemption)
	pl, err := newPlugin(ctx, args, handle, plfeature.NewSchedulerFeaturesFromGates(gates), gates.Enabled(DRACELDeviceConstraint), measured, s.profiles)
	if err != nil {
		return nil, err
	}
	s.run.Do(func() {
		if err = observe.LimitQuantities(s.informers, handle.EventRecorder, measured); err != nil {
			return
		}
		if err = forgetPods(s.informers, s.profiles.guard); err != nil {
			return
		}
		go s.profiles.guard.Run(ctx)
		if pl.exchange == nil || !pl.resolver.Enabled {
			return
		}
		if err = s.profiles.asked.Watch(ctx, s.informers); err == nil {
			go observe.NewFragmentationMonitor(handle, pl.resolver.Manager, pl.resolver.Features, measured, s.profiles.FragmentationInterval).Run(ctx, s.profiles.guard.Started())
		}
	})
	return pl, err
}
