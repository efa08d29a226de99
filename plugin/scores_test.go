// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/cases"
)

// nodeWithCPUs is a node, and a pod that uses as many of its ten CPUs.
func nodeWithCPUs(name string, inUse int64) (*v1.Node, *v1.Pod) {
	ten := v1.ResourceList{v1.ResourceCPU: resource.MustParse("10"), v1.ResourcePods: resource.MustParse("100")}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Capacity: ten, Allocatable: ten}}
	return node, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "on-" + name},
		Spec:       v1.PodSpec{NodeName: name, Containers: []v1.Container{wantingCPUs(inUse)}},
	}
}

func wantingCPUs(n int64) v1.Container {
	return v1.Container{Name: "main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}}}
}

// profileWith is a profile of kube-scheduler with our plugins and bin packing by CPUs, with weights.
func profileWith(ctx context.Context, t *testing.T, h *handle, snapshot *schedulercache.Snapshot, packing, ours int32) framework.Framework {
	t.Helper()
	plugins := &config.Plugins{
		QueueSort: config.PluginSet{Enabled: []config.Plugin{{Name: queuesort.Name}}},
		Bind:      config.PluginSet{Enabled: []config.Plugin{{Name: defaultbinder.Name}}},
		MultiPoint: config.PluginSet{Enabled: []config.Plugin{
			{Name: Name, Weight: 2}, {Name: PreferenceName, Weight: ours}, {Name: noderesources.Name, Weight: packing},
		}},
	}
	registry := frameworkruntime.Registry{
		queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New,
		Name: func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			return newPlugin(ctx, args, handle, features(), true, newMetrics(t), newShared())
		},
		PreferenceName:     NewPreferenceFactory(utilfeature.DefaultFeatureGate),
		noderesources.Name: frameworkruntime.FactoryAdapter(features(), noderesources.NewFit),
	}
	profile := &config.KubeSchedulerProfile{SchedulerName: "celset-scheduler", Plugins: plugins, PluginConfig: []config.PluginConfig{{
		Name: noderesources.Name, Args: &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
			Type: config.MostAllocated, Resources: []config.ResourceSpec{{Name: string(v1.ResourceCPU), Weight: 1}},
		}},
	}}}
	schedulermetrics.Register()
	f, err := frameworkruntime.NewFramework(ctx, registry, profile,
		frameworkruntime.WithClientSet(h.client), frameworkruntime.WithInformerFactory(h.factory),
		frameworkruntime.WithSharedDRAManager(h.manager), frameworkruntime.WithSnapshotSharedLister(snapshot))
	require.NoError(t, err)
	return f
}

// TestScoresAddUp is the example in docs/preferences.md#which-node: a pod that wants two CPUs and a device, and two
// nodes of which one is fuller, the other has the better device.
func TestScoresAddUp(t *testing.T) {
	for name, test := range map[string]struct {
		packing, preference int32
		want                map[string]int64
	}{
		"as in the manifests":       {packing: 1, preference: 3, want: map[string]int64{"fuller": 80, "better": 20 + 300}},
		"packing comes first":       {packing: 10, preference: 3, want: map[string]int64{"fuller": 800, "better": 200 + 300}},
		"preferences hardly matter": {packing: 1, preference: 1, want: map[string]int64{"fuller": 80, "better": 20 + 100}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(onNodes(map[string][]int64{"fuller": {0, 1}, "better": {6, 7}}), class(), prefer(t, claim(1), "p", greatest))
			ctx, h := newHandle(t, objects...)
			fuller, onFuller := nodeWithCPUs("fuller", 6)
			better, onBetter := nodeWithCPUs("better", 0)
			snapshot := schedulercache.NewSnapshot([]*v1.Pod{onFuller, onBetter}, []*v1.Node{fuller, better})
			f := profileWith(ctx, t, h, snapshot, test.packing, test.preference)
			h.start(ctx, t, objects...)

			p, state := pod(), framework.NewCycleState()
			p.Spec.Containers = []v1.Container{wantingCPUs(2)}
			_, status, _ := f.RunPreFilterPlugins(ctx, state, p)
			require.True(t, status.IsSuccess(), status)
			infos, err := snapshot.NodeInfos().List()
			require.NoError(t, err)
			for _, info := range infos {
				require.True(t, f.RunFilterPlugins(ctx, state, p, info).IsSuccess())
			}
			require.True(t, f.RunPreScorePlugins(ctx, state, p, infos).IsSuccess())
			scores, status := f.RunScorePlugins(ctx, state, p, infos)
			require.True(t, status.IsSuccess(), status)
			got := map[string]int64{}
			for _, score := range scores {
				got[score.Name] = score.TotalScore
			}
			require.Equal(t, test.want, got)
			require.Nil(t, f.SignPod(ctx, p), "nothing may be reused for the next one")
			p.Spec.ResourceClaims = nil
			require.NotNil(t, f.SignPod(ctx, p), "pods without devices are none of our business")
		})
	}
}

// value is that of a preference of a claim.
func value(claim, preference int, value int64) allocator.PreferenceValue {
	return allocator.PreferenceValue{Claim: claim, Preference: preference, Value: value}
}

func details(values ...allocator.PreferenceValue) allocator.Details {
	return allocator.Details{Outcome: allocator.PreferenceBest, Preferences: values}
}

// named are nodes.
func named(names ...string) []fwk.NodeInfo {
	infos := make([]fwk.NodeInfo, 0, len(names))
	for _, name := range names {
		infos = append(infos, node(name))
	}
	return infos
}

func TestScoresOfNodes(t *testing.T) {
	for name, test := range map[string]struct {
		values map[string]allocator.Details
		want   nodeScores
	}{
		"nothing": {},
		"alike":   {values: map[string]allocator.Details{"a": details(value(0, 0, 7)), "b": details(value(0, 0, 7)), "c": details(value(0, 0, 7))}},
		"three": {
			values: map[string]allocator.Details{"a": details(value(0, 0, -5)), "b": details(value(0, 0, 1000)), "c": details(value(0, 0, -4))},
			want:   nodeScores{"a": 0, "b": 100, "c": 50},
		},
		"by rank, not by how much": {
			values: map[string]allocator.Details{"a": details(value(0, 0, math.MinInt64)), "b": details(value(0, 0, math.MaxInt64)), "c": details(value(0, 0, math.MaxInt64))},
			want:   nodeScores{"a": 0, "b": 100, "c": 100},
		},
		"the second decides among equal ones": {
			values: map[string]allocator.Details{
				"a": details(value(0, 0, 2), value(1, 0, 1)), "b": details(value(0, 0, 1), value(1, 0, 9)), "c": details(value(0, 0, 2), value(1, 0, 2)),
			},
			want: nodeScores{"a": 50, "b": 0, "c": 100},
		},
		"none is the worst": {
			values: map[string]allocator.Details{"a": details(value(0, 0, math.MinInt64)), "b": details(value(0, 0, math.MinInt64), value(0, 1, math.MinInt64))},
			want:   nodeScores{"a": 50, "b": 100, "c": 0},
		},
		"the first is missing": {
			values: map[string]allocator.Details{"a": details(value(0, 1, 9)), "b": details(value(0, 0, 0)), "c": details(value(0, 2, 9))},
			want:   nodeScores{"a": 50, "b": 100, "c": 0},
		},
		"nodes that don't fit don't count": {
			values: map[string]allocator.Details{"a": details(value(0, 0, 1)), "b": details(value(0, 0, 2)), "c": details(value(0, 0, 2)), "d": details(value(0, 0, 3))},
			want:   nodeScores{"a": 0, "b": 100, "c": 100},
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := &nodeValues{}
			for node, d := range test.values {
				values.note(t.Context(), node, d)
			}
			require.Equal(t, test.want, values.scores(named("a", "b", "c")))
		})
	}
}

// What was found last on a node counts, also if it was nothing.
func TestLastValuesCount(t *testing.T) {
	values := &nodeValues{}
	values.note(t.Context(), "a", details(value(0, 0, 5)))
	values.note(t.Context(), "b", details(value(0, 0, 4)))
	clone := values.Clone().(*nodeValues)
	clone.note(t.Context(), "a", details(value(0, 0, 3)))
	require.Equal(t, nodeScores{"a": 0, "b": 100}, values.scores(named("a", "b")))
	values.note(t.Context(), "b", allocator.Details{})
	require.Equal(t, nodeScores{"a": 100, "b": 0}, clone.scores(named("a", "b")))
	values.note(t.Context(), "a", allocator.Details{})
	require.Nil(t, values.scores(named("a", "b")))
	require.Empty(t, values.byNode)
}

// The order is that of vectors in which what is missing is less than everything.
func TestOrderOfValues(t *testing.T) {
	const claims, preferences = 2, 3
	values := rapid.Custom(func(t *rapid.T) [claims * preferences]*int64 {
		var all [claims * preferences]*int64
		for i := range all {
			all[i] = rapid.Ptr(rapid.Int64Range(-1, 1), true).Draw(t, "value")
		}
		return all
	})
	listed := func(all [claims * preferences]*int64) (list []allocator.PreferenceValue) {
		for i, v := range all {
			if v != nil {
				list = append(list, value(i/preferences, i%preferences, *v))
			}
		}
		return list
	}
	less := func(a, b *int64) int {
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return -1
		case b == nil:
			return 1
		}
		return cmp.Compare(*a, *b)
	}
	cases.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		want := 0
		for i := range a {
			want = cmp.Or(want, less(a[i], b[i]))
		}
		require.Equal(t, want, compareValues(listed(a), listed(b)))
	})
}
