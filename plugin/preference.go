// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/plugin/cycle"
)

// PreferenceName is the name of the plugin [Preference] in scheduler configurations.
const PreferenceName = "DynamicResourcesCELPreference"

// Preference scores nodes by what preferences say of the devices that [DynamicResourcesCEL] has
// found there. It is a plugin of its own so that a profile can give it a weight of its own, beside
// that of prioritized lists, which DynamicResourcesCEL scores as upstream does. It searches
// nothing: Filter has.
type Preference struct {
	extended bool
	classes  func() fwk.DeviceClassResolver
}

var (
	_ fwk.PreScorePlugin = &Preference{}
	_ fwk.ScorePlugin    = &Preference{}
	_ fwk.SignPlugin     = &Preference{}
)

// NewPreferenceFactory returns the factory to register under [PreferenceName].
func NewPreferenceFactory(gates featuregate.FeatureGate) frameworkruntime.PluginFactory {
	return func(_ context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if args != nil {
			return nil, fmt.Errorf("%s: it takes no arguments: remove its pluginConfig", PreferenceName)
		}
		features := plfeature.NewSchedulerFeaturesFromGates(gates)
		return &Preference{
			extended: features.EnableDynamicResourceAllocation && features.EnableDRAExtendedResource,
			classes:  func() fwk.DeviceClassResolver { return handle.SharedDRAManager().DeviceClassResolver() },
		}, nil
	}
}

// Name returns [PreferenceName].
func (p *Preference) Name() string { return PreferenceName }

// nodeScores has a score for each node that passed Filter.
type nodeScores map[string]int64

// nodeScoresKey is where the state of a scheduling cycle has its nodeScores.
const nodeScoresKey fwk.StateKey = PreferenceName

// Clone implements [fwk.StateData]. Nobody modifies them.
func (s nodeScores) Clone() fwk.StateData { return s }

// PreScore ranks the nodes. If none is better than another there is nothing to score.
func (p *Preference) PreScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	values := cycle.NodeValuesIn(state)
	if values == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	scores := values.Scores(nodes)
	if scores == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	klog.FromContext(ctx).V(5).Info("Nodes differ by what preferences say of their devices", "pod", klog.KObj(pod), "nodes", len(nodes))
	state.Write(nodeScoresKey, nodeScores(scores))
	return nil
}

// Score returns what PreScore has found out.
func (p *Preference) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(nodeScoresKey)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	scores, ok := data.(nodeScores)
	if !ok {
		return 0, fwk.AsStatus(fmt.Errorf("the state %s is a %T", nodeScoresKey, data))
	}
	return scores[node.Node().Name], nil
}

// ScoreExtensions returns nil: scores are from 0 to the maximum as they are.
func (p *Preference) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod implements [fwk.SignPlugin]. A pod that gets devices changes the scores for the next one
// like it, on the node that it goes to, so one may not be scheduled by the scores of the other. That
// preferences play no role for most of them is not asked: upstream's plugin refuses all pods with
// claims, too.
func (p *Preference) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if len(pod.Spec.ResourceClaims) > 0 || p.extended && len(extended.Resources(pod, p.classes().GetDeviceClass)) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "scores of pods with devices don't hold for the next pod")
	}
	return nil, nil
}
