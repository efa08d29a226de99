// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/podclaims"
	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/plugin/arguments"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/gang"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/observe"
	"github.com/celset/celset/plugin/pendingwrites"
	"github.com/celset/celset/plugin/preempt"
	"github.com/celset/celset/plugin/preference"
	"github.com/celset/celset/plugin/preparation"
)

// Name is the name of the plugin in scheduler configurations.
const Name = cycle.PluginName

// DynamicResourcesCEL is upstream's plugin with celset's allocator for the pods that need it.
type DynamicResourcesCEL struct {
	*dynamicresources.DynamicResources
	settings

	resolver   *cycle.Resolver
	prepared   preparation.Claims
	allocators *cycle.Allocators
	watched    *cycle.Recorder
	exchange   *exchange
	turns      guard.Turns
	writes     pendingwrites.Pending
	holds      preempt.Holds
	preempter  preempt.Preemption
	misses     *observe.NearMisses
}

// settings are the settings of the profile, and the parts of the framework that the plugin uses.
type settings struct {
	name           string
	mode           configv1alpha1.AllocatorMode
	attemptTimeout time.Duration
	metrics        *metrics.Metrics
	// handle runs filters. isFirstAfterFilter reports whether this plugin's PostFilter runs before the others'.
	handle             fwk.Handle
	isFirstAfterFilter func() bool
	// activate moves a pod to the active queue.
	activate func(*v1.Pod)
}

var (
	_ fwk.PreEnqueuePlugin         = &DynamicResourcesCEL{}
	_ fwk.PreFilterPlugin          = &DynamicResourcesCEL{}
	_ fwk.FilterPlugin             = &DynamicResourcesCEL{}
	_ fwk.PostFilterPlugin         = &DynamicResourcesCEL{}
	_ fwk.PodGroupPostFilterPlugin = &DynamicResourcesCEL{}
	_ fwk.ScorePlugin              = &DynamicResourcesCEL{}
	_ fwk.ReservePlugin            = &DynamicResourcesCEL{}
	_ fwk.EnqueueExtensions        = &DynamicResourcesCEL{}
	_ fwk.PreBindPlugin            = &DynamicResourcesCEL{}
	_ fwk.SignPlugin               = &DynamicResourcesCEL{}
)

// New returns the plugin for a program other than celset-scheduler: an autoscaler that tries pods on nodes that don't exist
// yet, a queue, another scheduler. New replaces upstream's [dynamicresources.New] and has the same signature. args are
// upstream's arguments or [DynamicResourcesCELArgs]. With upstream's arguments, the plugin has upstream's name. The framework
// needs no client and can have any SharedDRAManager. Constraints and preferences apply. Expressions are compiled when a pod is
// first tried. New starts no goroutines and registers no metrics.
//
// New leaves out the parts that a scheduler with several tenants needs: turns of namespaces, time limits for attempts, held
// devices and pending writes. celset-scheduler has these parts. See [NewFactories].
//
// [DynamicResourcesCELArgs]: https://pkg.go.dev/github.com/celset/celset/apis/config/v1alpha1#DynamicResourcesCELArgs
func New(ctx context.Context, args runtime.Object, handle fwk.Handle, features plfeature.Features) (fwk.Plugin, error) {
	unseen, err := metrics.Unregistered()
	if err != nil {
		return nil, err
	}
	return newPlugin(ctx, args, handle, features, true, unseen, newProfiles(nil, nil))
}

// NewFactory returns the factory to register under [Name]. The gates are read when the factory is called, after flag parsing.
func NewFactory(gates featuregate.FeatureGate) frameworkruntime.PluginFactory {
	return NewGuardedFactory(gates, guard.New(clock.RealClock{}))
}

// NewGuardedFactory is NewFactory with a guard that can watch the program's scheduling queue. A guard without a queue does not
// enforce the namespaces' shares of scheduling time.
func NewGuardedFactory(gates featuregate.FeatureGate, guard *guard.Guard) frameworkruntime.PluginFactory {
	return NewFactories(gates, guard)[Name]
}

// NewFactories returns the factories of all plugins of this package, to register under their names. All plugins created by
// these factories share one state.
func NewFactories(gates featuregate.FeatureGate, guard *guard.Guard) frameworkruntime.Registry {
	var run schedulers
	return frameworkruntime.Registry{
		Name: func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			measured, err := metrics.Default()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", Name, err)
			}
			return run.of(handle, guard, gates).add(ctx, args, handle, measured)
		},
		gang.Name: func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			measured, err := metrics.Default()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", gang.Name, err)
			}
			shared := run.of(handle, guard, gates).profiles
			features := plfeature.NewSchedulerFeaturesFromGates(gates)
			slices, err := shared.slicesOf(ctx, features, measured, handle)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", gang.Name, err)
			}
			return gang.New(ctx, args, handle, gang.Config{
				Features: features, Enabled: gates.Enabled(CelsetNodeSetConstraint), Slices: slices,
				Metrics: measured, Turns: shared.turns(), Activate: activator(ctx, handle), Groups: shared.groupsOf,
			})
		},
		preference.Name: preference.NewFactory(gates),
	}
}

func newPlugin(ctx context.Context, args runtime.Object, handle fwk.Handle, features plfeature.Features, enabled bool,
	measured *metrics.Metrics, shared *profiles) (*DynamicResourcesCEL, error) {
	decoded, err := arguments.Decode(args, features, shared.gates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	enriched, err := shared.enrichmentOf(ctx, features, measured, handle)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	manager := enriched.Manager(handle.SharedDRAManager())
	pl := &DynamicResourcesCEL{
		settings: settings{
			name: Name, mode: decoded.Allocator, attemptTimeout: decoded.AttemptTimeout.Duration, metrics: measured, handle: handle, activate: activator(ctx, handle),
			// isFirstInPostFilter runs when the first pod is tried: the framework has no list of plugins before.
			isFirstAfterFilter: sync.OnceValue(func() bool { return isFirstInPostFilter(handle) }),
		},
		resolver: &cycle.Resolver{
			Manager: manager, Features: features, Enabled: enabled, Preference: decoded.DefaultPreference,
			Checker: &podclaims.Checker{
				WorkloadClaims: features.EnableDRAWorkloadResourceClaims, PrioritizedList: features.EnableDRAPrioritizedList,
				BindingConditions: len(arguments.BindingTimeoutLacks(features)) == 0, BindingTimeout: decoded.BindingTimeout.Duration,
			},
		},
		watched: cycle.NewRecorder(handle, manager), turns: shared.turns(), writes: pendingwrites.None{}, holds: preempt.NoHolds{}, preempter: preempt.NoPreemption{},
	}
	pl.allocators = &cycle.Allocators{
		Resolver: pl.resolver, Asked: shared.asked, Budget: allocator.Budget{Cost: uint64(*decoded.Budget.Cost), Steps: *decoded.Budget.Steps},
	}
	if pl.mode != configv1alpha1.AllocatorUpstream {
		pl.allocators.Cache = allocator.NewCache(allocator.CacheBytes(decoded.CacheSize.Value()))
	}
	if features.EnableDynamicResourceAllocation && shared.guard != nil {
		writes, err := shared.writesOf(ctx, measured, handle)
		if err != nil {
			return nil, err
		}
		pl.writes, pl.watched.Writes = writes, writes
	}
	upstream, err := dynamicresources.New(ctx, arguments.ForUpstream(decoded, features), pl.watched, features)
	if err != nil {
		return nil, err
	}
	pl.DynamicResources = upstream.(*dynamicresources.DynamicResources)
	if _, ok := args.(*config.DynamicResourcesArgs); ok {
		pl.name = pl.DynamicResources.Name()
	}
	if decoded.DefaultPreference != "" && !enabled {
		klog.FromContext(ctx).Info("The plugin's argument defaultPreference has no effect while the feature gate is disabled",
			"profile", handle.ProfileName(), "defaultPreference", decoded.DefaultPreference, "gate", DRACELDeviceConstraint)
	}
	if err := shared.configure(handle.ProfileName(), decoded); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if !features.EnableDynamicResourceAllocation {
		// With DynamicResourceAllocation off, upstream's plugin does nothing and writes no cycle state.
		pl.prepared = preparation.AtOnce{}
		return pl, nil
	}
	if pl.allocators.Preparing, err = shared.preparingOf(features, pl.resolver.Manager, measured); err != nil {
		return nil, err
	}
	pl.prepared = shared.preparedOf(ctx, preparation.View{
		Store: pl.allocators.Preparing, Constraints: enabled && pl.mode != configv1alpha1.AllocatorUpstream,
	}, pl.activate)
	pl.misses = &observe.NearMisses{
		Allocators: pl.allocators, Prepared: pl.prepared, Name: pl.name, WithTimeout: shared.withTimeout,
		TaintRules: shared.taintRules(handle),
		Nodes:      func() fwk.NodeInfoLister { return handle.SnapshotSharedLister().NodeInfos() },
	}
	measured.WatchClaims(func() ([]*resourceapi.ResourceClaim, error) { return pl.resolver.Manager.ResourceClaims().List() })
	if pl.exchange, err = probe(ctx, pl.DynamicResources); err != nil {
		return nil, err
	}
	enriched.OnChange(pl.retry)
	if shared.preempts {
		err = pl.preparePreemption(ctx, decoded.DevicePreemption, shared)
	}
	return pl, err
}

// preparePreemption sets up holds for every profile, and preemption for profiles that use celset's allocator.
func (pl *DynamicResourcesCEL) preparePreemption(ctx context.Context, args *configv1alpha1.DevicePreemption, shared *profiles) error {
	holds, err := shared.holdsOf(ctx, pl.metrics, pl.watched)
	if err != nil {
		return err
	}
	holding := &preempt.Holding{PodHolds: holds, Resolver: pl.resolver, Name: pl.name, Activate: pl.activate}
	pl.holds = holding
	if pl.mode == configv1alpha1.AllocatorUpstream {
		return nil
	}
	preempter := &preempt.Preempter{
		Args: args, Handle: pl.handle, Metrics: pl.metrics, Name: pl.name, Allocators: pl.allocators, Prepared: pl.prepared, Holding: holding, Writes: pl.writes,
	}
	pl.preempter = preempter
	return preempter.Start(ctx, pl.watched)
}

// probe runs upstream's PreFilter for a pod without claims, and checks the type of the cycle state that PreFilter writes.
func probe(ctx context.Context, upstream *dynamicresources.DynamicResources) (*exchange, error) {
	state := framework.NewCycleState()
	if _, status := upstream.PreFilter(ctx, state, &v1.Pod{}, nil); !status.IsSkip() {
		return nil, incompatible("PreFilter of a pod without claims returned %v", status)
	}
	data, err := state.Read(dynamicresources.Name)
	if err != nil {
		return nil, incompatible("PreFilter wrote no cycle state under %s: %v", dynamicresources.Name, err)
	}
	return newExchange(data)
}

// Name returns [Name], or upstream's name if the plugin has upstream's arguments.
func (pl *DynamicResourcesCEL) Name() string { return pl.name }

func gateMessage(claim *resourceapi.ResourceClaim) string {
	return fmt.Sprintf("resourceclaim %s has a CEL device constraint, but the feature gate %s is disabled: enable it with --feature-gates=%s=true",
		klog.KObj(claim), DRACELDeviceConstraint, DRACELDeviceConstraint)
}

// activator returns a function that moves a waiting pod to the active queue. If the pod is being scheduled, the queue activates
// it after that attempt.
func activator(ctx context.Context, handle fwk.Handle) func(*v1.Pod) {
	logger := klog.FromContext(ctx)
	return func(pod *v1.Pod) { handle.Activate(logger, map[string]*v1.Pod{klog.KObj(pod).String(): pod}) }
}

// DRACELDeviceConstraint is the feature gate of KEP-5254: alpha, off by default. While it is off, pods that need a CEL device
// constraint are unschedulable.
const DRACELDeviceConstraint featuregate.Feature = v1alpha1.FeatureGate

// CelsetDevicePreemption is the feature gate of preemption for devices: alpha, off by default. No KEP proposes it, so its name
// contains celset: celset-scheduler would not start if kube-scheduler had a gate of the same name. While the gate is off, a pod
// that lacks devices evicts no pods, as in Kubernetes.
const CelsetDevicePreemption featuregate.Feature = "CelsetDevicePreemption"

// CelsetNodeSetConstraint is the feature gate of node set constraints for pod groups: alpha, off by default. While it is off,
// groups that refer to a node set constraint are unschedulable. It requires GenericWorkload and
// TopologyAwareWorkloadScheduling.
const CelsetNodeSetConstraint featuregate.Feature = v1alpha1.NodeSetFeatureGate

// AddFeatureGates registers the gates of this package. It must be called before flags are parsed.
func AddFeatureGates(gates featuregate.MutableVersionedFeatureGate) error {
	return gates.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{
		// The first version with resource.k8s.io/v1. Every emulated version has the gates that start here.
		DRACELDeviceConstraint:  {{Version: version.MajorMinor(1, 34), Default: false, PreRelease: featuregate.Alpha}},
		CelsetDevicePreemption:  {{Version: version.MajorMinor(1, 34), Default: false, PreRelease: featuregate.Alpha}},
		CelsetNodeSetConstraint: {{Version: version.MajorMinor(1, 37), Default: false, PreRelease: featuregate.Alpha}},
	})
}
