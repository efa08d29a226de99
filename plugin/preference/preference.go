// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preference is the scheduler plugin DynamicResourcesCELPreference. It scores each node by the preference values of the
// devices that package plugin found there in Filter. It does no search of its own. It is a separate plugin, so that a profile
// can give it its own weight. Package plugin itself only scores prioritized lists, as upstream does.
package preference

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

// Name is the name of the plugin in scheduler configurations.
const Name = "DynamicResourcesCELPreference"

// Scorer is the score plugin.
type Scorer struct {
	extended bool
	classes  func() fwk.DeviceClassResolver
}

var (
	_ fwk.PreScorePlugin = &Scorer{}
	_ fwk.ScorePlugin    = &Scorer{}
	_ fwk.SignPlugin     = &Scorer{}
)

// NewFactory returns the factory to register under [Name].
func NewFactory(gates featuregate.FeatureGate) frameworkruntime.PluginFactory {
	return func(_ context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if args != nil {
			return nil, fmt.Errorf("%s: the plugin takes no arguments: remove its entry from pluginConfig", Name)
		}
		features := plfeature.NewSchedulerFeaturesFromGates(gates)
		return &Scorer{
			extended: features.EnableDynamicResourceAllocation && features.EnableDRAExtendedResource,
			classes:  func() fwk.DeviceClassResolver { return handle.SharedDRAManager().DeviceClassResolver() },
		}, nil
	}
}

// Name returns the name of the plugin.
func (p *Scorer) Name() string { return Name }

// nodeScores maps the names of the nodes that passed Filter to their scores.
type nodeScores map[string]int64

// nodeScoresKey is the CycleState key of the nodeScores.
const nodeScoresKey fwk.StateKey = Name

// Clone implements [fwk.StateData]. nodeScores are immutable.
func (s nodeScores) Clone() fwk.StateData { return s }

// PreScore computes the scores of all nodes. It returns Skip if all nodes are equally good.
func (p *Scorer) PreScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	values := cycle.NodeValuesIn(state)
	if values == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	scores := values.Scores(nodes)
	if scores == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	klog.FromContext(ctx).V(5).Info("Preferences give nodes different scores", "pod", klog.KObj(pod), "nodes", len(nodes))
	state.Write(nodeScoresKey, nodeScores(scores))
	return nil
}

// Score returns the score that PreScore computed.
func (p *Scorer) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
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

// ScoreExtensions returns nil, because the scores are already between 0 and the maximum.
func (p *Scorer) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod implements [fwk.SignPlugin]. A pod that gets devices on a node changes that node's score for the next equal pod, so
// equal pods must not reuse scores. A pod without preferences could be signed, but upstream's plugin refuses to sign any pod
// with claims.
func (p *Scorer) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if len(pod.Spec.ResourceClaims) > 0 || p.extended && len(extended.Resources(pod, p.classes().GetDeviceClass)) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the scores of a pod with devices are not valid for other pods")
	}
	return nil, nil
}
