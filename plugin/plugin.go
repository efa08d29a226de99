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
	"k8s.io/component-base/featuregate"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/pendingwrites"
)

// Name is the name of the plugin in scheduler configurations.
const Name = "DynamicResourcesCEL"

// DynamicResourcesCEL is upstream's plugin with our allocator for the pods that
// need it.
type DynamicResourcesCEL struct {
	*dynamicresources.DynamicResources

	enabled bool
	mode    configv1alpha1.AllocatorMode
	budget  *configv1alpha1.Budget
	// preference is the policy for claims that no preference is about, "" for none.
	preference       v1alpha1.PreferencePolicy
	preferenceBudget *configv1alpha1.PreferenceBudget
	// asked are the shapes that claims ask for.
	asked    *askedShapes
	features plfeature.Features
	nodes    func() fwk.NodeInfoLister
	claims   fwk.SharedDRAManager
	mistakes *mistakes
	// preparing has what claims say, nil where nothing is allocated.
	preparing *preparing
	watched   *recorder
	// writes are the pending ones, nil where nothing is allocated.
	writes   *pendingwrites.Writes
	exchange *exchange
	metrics  *metrics.Metrics
	// cache is what the allocators of all scheduling cycles share, nil where upstream's serves all
	// pods.
	cache *allocator.Cache
	// handle runs filters, isFirstAfterFilter tells whether PostFilter begins with ours.
	handle fwk.Handle
	// holds are those of all profiles, nil if devices are not preempted. preempter is nil if they are not
	// in this profile. resumed: what was held before is held again.
	holds              *hold.Holds
	preempter          *preempter
	resumed            sync.Once
	isFirstAfterFilter func() bool
	// guard is what all profiles share; activate has the queue try a pod.
	guard          *guard.Guard
	attemptTimeout time.Duration
	withTimeout    func(context.Context, time.Duration) (context.Context, context.CancelFunc)
	activate       func(*v1.Pod)
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
	_ fwk.PreFilterExtensions      = &DynamicResourcesCEL{}
	_ fwk.PreBindPlugin            = &DynamicResourcesCEL{}
	_ fwk.SignPlugin               = &DynamicResourcesCEL{}
)

// NewFactory returns the factory to register under [Name]. The gates are read
// when the factory is called, that is after flags were parsed.
func NewFactory(gates featuregate.FeatureGate) frameworkruntime.PluginFactory {
	return NewGuardedFactory(gates, guard.New(clock.RealClock{}))
}

// NewGuardedFactory is NewFactory with a guard that the program shows the scheduling queue
// to. Without that, namespaces have no share of the scheduler's time.
func NewGuardedFactory(gates featuregate.FeatureGate, guard *guard.Guard) frameworkruntime.PluginFactory {
	var run schedulers
	return func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		measured, err := metrics.Default()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
		return run.of(handle, guard, gates).add(ctx, args, handle, measured)
	}
}

func newPlugin(ctx context.Context, args runtime.Object, handle fwk.Handle, features plfeature.Features, enabled bool,
	measured *metrics.Metrics, shared *profiles) (*DynamicResourcesCEL, error) {
	decoded, err := decodeArgs(args, features, shared.gates)
	if err != nil {
		return nil, err
	}
	watched := newRecorder(handle)
	if features.EnableDynamicResourceAllocation {
		if watched.writes, err = shared.writesOf(ctx, measured, handle); err != nil {
			return nil, err
		}
	}
	upstream, err := dynamicresources.New(ctx, upstreamArgs(decoded, features), watched, features)
	if err != nil {
		return nil, err
	}
	pl := &DynamicResourcesCEL{
		DynamicResources: upstream.(*dynamicresources.DynamicResources),
		enabled:          enabled,
		mode:             decoded.Allocator,
		budget:           decoded.Budget,
		preference:       decoded.DefaultPreference,
		preferenceBudget: decoded.PreferenceBudget,
		asked:            shared.asked,
		withTimeout:      shared.withTimeout,
		features:         features,
		nodes:            func() fwk.NodeInfoLister { return handle.SnapshotSharedLister().NodeInfos() },
		claims:           handle.SharedDRAManager(),
		watched:          watched,
		writes:           watched.writes,
		mistakes:         shared.mistakes,
		metrics:          measured,
		guard:            shared.guard,
		attemptTimeout:   decoded.AttemptTimeout.Duration,
		activate:         activator(ctx, handle),
		handle:           handle,
	}
	// The framework is ready when the first pod comes.
	pl.isFirstAfterFilter = sync.OnceValue(func() bool { return isFirstInPostFilter(handle) })
	if pl.preference != "" && !enabled {
		klog.FromContext(ctx).Info("The plugin's argument defaultPreference has no effect while the feature gate is disabled",
			"profile", handle.ProfileName(), "defaultPreference", pl.preference, "gate", DRACELDeviceConstraint)
	}
	if err := shared.configure(handle.ProfileName(), decoded); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if pl.mode != configv1alpha1.AllocatorUpstream {
		pl.cache = allocator.NewCache(allocator.CacheBytes(decoded.CacheSize.Value()))
	}
	if !features.EnableDynamicResourceAllocation {
		// Upstream's plugin does nothing then, and keeps no state.
		return pl, nil
	}
	if pl.preparing, err = shared.preparingOf(ctx, features, pl.claims, measured); err != nil {
		return nil, err
	}
	measured.WatchClaims(pl.claims.ResourceClaims().List)
	if pl.exchange, err = probe(ctx, pl.DynamicResources); err != nil {
		return nil, err
	}
	if shared.preempts {
		err = pl.preparePreemption(ctx, decoded.DevicePreemption, shared)
	}
	return pl, err
}

// preparePreemption makes what evicts pods for devices, where our allocator can say whom.
func (pl *DynamicResourcesCEL) preparePreemption(ctx context.Context, args *configv1alpha1.DevicePreemption, shared *profiles) error {
	var err error
	if pl.holds, err = shared.holdsOf(ctx, pl.metrics, pl.handle.SharedInformerFactory()); err != nil || pl.mode == configv1alpha1.AllocatorUpstream {
		return err
	}
	pl.preempter, err = newPreempter(ctx, pl, args)
	return err
}

// probe lets upstream's PreFilter write its state for a pod without claims, and
// checks it.
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

// Name returns [Name].
func (pl *DynamicResourcesCEL) Name() string { return Name }

// PreFilter refuses a pod at once that is not to be tried now, and then runs upstream's
// PreFilter. If the pod then has claims to allocate and one of them has a CEL constraint or a
// preference, these are checked, so that a mistake is reported once and not once a node, and
// upstream's Filter is made to use our allocator, unless the arguments leave all pods to
// upstream's.
func (pl *DynamicResourcesCEL) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	// What an earlier attempt with this state found does not count any more.
	state.Delete(nodeValuesKey)
	if pl.preempter != nil {
		pl.resumed.Do(func() { pl.preempter.resume(ctx) })
	}
	attempt, status := pl.admitClaims(pod)
	if !status.IsSuccess() {
		return nil, status
	}
	defer attempt.Progress()
	var prepared allocator.Prepared
	if attempt != nil {
		if prepared, status = pl.preparedClaims(ctx, pod); !status.IsSuccess() {
			return nil, status
		}
	}
	var result *fwk.PreFilterResult
	if pl.writes != nil && pl.asksForDevices(pod) {
		if err := pl.writes.CatchUp(ctx); err != nil {
			return nil, fwk.AsStatus(err)
		}
	}
	kept := func() []resourceapi.DeviceRequestAllocationResult { return pl.keptFrom(pod) }
	seen := pl.watched.during(kept, func() { result, status = pl.DynamicResources.PreFilter(ctx, state, pod, nodes) })
	if !status.IsSuccess() || pl.exchange == nil {
		return result, status
	}
	field, status := pl.allocatorIn(state)
	if !status.IsSuccess() || *field == nil {
		// Nothing is to be allocated: the claims were when upstream looked.
		return result, status
	}
	if attempt == nil {
		// The devices are for extended resources.
		if attempt, status = pl.admit(pod, nil); !status.IsSuccess() {
			return nil, status
		}
		defer attempt.Progress()
	}
	if status := pl.chooseAllocator(ctx, field, pod, prepared, seen, attempt); !status.IsSuccess() {
		return nil, status
	}
	if ours, ok := (*field).(*measuredAllocator); ok {
		state.Write(nodeValuesKey, &ours.values)
	}
	if !result.AllNodes() {
		return result, nil
	}
	return pl.passOver(state, pod, nodes, *field)
}

// chooseAllocator leaves upstream's allocator in the cycle state, with a limit for its time,
// or puts ours there.
func (pl *DynamicResourcesCEL) chooseAllocator(ctx context.Context, field *structured.Allocator, pod *v1.Pod, prepared allocator.Prepared, seen *material, attempt *guard.Attempt) *fwk.Status {
	all, err := pl.unallocatedClaims(pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	for _, claim := range all {
		if err := prepared.SelectorsErr(claim); err != nil {
			pl.metrics.ObserveRefusal(metrics.RefusalSelector)
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
		}
	}
	if pl.mode == configv1alpha1.AllocatorUpstream {
		return pl.limit(ctx, field, prepared, seen, attempt)
	}
	claims := pl.withExtended(pod, all)
	constrained := pl.constrained(claims)
	if len(constrained) == 0 && pl.mode != configv1alpha1.AllocatorAll && !pl.prefers(prepared, claims) {
		return pl.limit(ctx, field, prepared, seen, attempt)
	}
	if len(constrained) > 0 && !pl.enabled {
		pl.metrics.ObserveRefusal(metrics.RefusalGate)
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, gateMessage(constrained[0]))
	}
	ours, status := pl.checkedAllocator(ctx, pod, prepared, seen, claims, attempt)
	if status.IsSuccess() {
		*field = &measuredAllocator{Allocator: ours, metrics: pl.metrics, attempt: attempt, constrained: len(constrained) > 0}
	}
	return status
}

func gateMessage(claim *resourceapi.ResourceClaim) string {
	return fmt.Sprintf("resourceclaim %s has a CEL device constraint, but the feature gate %s is disabled: enable it with --feature-gates=%s=true",
		klog.KObj(claim), DRACELDeviceConstraint, DRACELDeviceConstraint)
}

// allocatorIn is where upstream has its allocator.
func (pl *DynamicResourcesCEL) allocatorIn(state fwk.CycleState) (*structured.Allocator, *fwk.Status) {
	data, err := state.Read(dynamicresources.Name)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	field, err := pl.exchange.allocator(data)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	return field, nil
}

// limit has upstream's allocator serve the claims, with a limit for its time and with their selectors as they
// were compiled.
func (pl *DynamicResourcesCEL) limit(ctx context.Context, field *structured.Allocator, prepared allocator.Prepared, seen *material, attempt *guard.Attempt) *fwk.Status {
	if len(prepared) > 0 {
		all, err := pl.gatherMaterial(ctx, *seen)
		if err != nil {
			return fwk.AsStatus(err)
		}
		*field, err = structured.NewAllocator(ctx, dynamicresources.AllocatorFeatures(pl.features), *all.allocated,
			pl.claims.DeviceClasses(), all.slices, prepared.SelectorsOr(pl.preparing.Selectors))
		if err != nil {
			return fwk.AsStatus(err)
		}
	}
	*field = newLimitedAllocator(*field, attempt)
	return nil
}

// checkedAllocator is our allocator for claims in which nothing is wrong.
func (pl *DynamicResourcesCEL) checkedAllocator(ctx context.Context, pod *v1.Pod, prepared allocator.Prepared, seen *material, claims []*resourceapi.ResourceClaim, attempt *guard.Attempt) (*allocator.Allocator, *fwk.Status) {
	budget := allocator.NewAttemptBudget(uint64(*pl.budget.AttemptCost), *pl.budget.AttemptSteps)
	budget.LimitPreferences(uint64(*pl.preferenceBudget.AttemptCost), *pl.preferenceBudget.AttemptSteps)
	attempt.OnOver(budget.End)
	ours, err := pl.newAllocator(ctx, prepared, *seen, allocator.WithAttemptBudget(budget))
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if err := ours.CheckConstraints(claims); err != nil {
		pl.mistakes.log(ctx, pod, err)
		pl.metrics.ObserveRefusal(metrics.RefusalConstraint)
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	return ours, nil
}

func (pl *DynamicResourcesCEL) newAllocator(ctx context.Context, prepared allocator.Prepared, seen material, opts ...allocator.Option) (*allocator.Allocator, error) {
	all, err := pl.gatherMaterial(ctx, seen)
	if err != nil {
		return nil, err
	}
	if pl.enabled {
		opts = append(opts,
			allocator.WithPreferenceBudget(uint64(*pl.preferenceBudget.Cost), *pl.preferenceBudget.Steps),
			allocator.WithDefaultPreference(pl.preference), allocator.WithShapes(pl.asked.shapes()))
	} else {
		opts = append(opts, allocator.WithoutDefaultConstraints(), allocator.WithoutPreferences())
	}
	opts = append(opts,
		allocator.WithReasons(), allocator.WithEnvironment(pl.preparing.environment), allocator.WithPrepared(prepared), allocator.WithCache(pl.cache),
		allocator.WithCostBudget(uint64(*pl.budget.Cost)), allocator.WithStepBudget(*pl.budget.Steps))
	return allocator.NewAllocator(ctx, dynamicresources.AllocatorFeatures(pl.features), *all.allocated,
		pl.claims.DeviceClasses(), all.slices, prepared.SelectorsOr(pl.preparing.Selectors), opts...)
}
