// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/internal/testing/transcript"
)

// unread is always false, but propagation can't find that: only the evaluation of a complete set does. The expression reads no
// attribute, so all sets are equivalent.
const unread = "devices.slice(0, 1).size() == 2"

// TestMetricsOfSearches compares metrics with a file. Each entry of the file is a kind of claim with a budget or an option, a
// colon, and the nodes of each cycle. node-1 has three devices: the first two form no ring, and the last two form a ring.
func TestMetricsOfSearches(t *testing.T) {
	expressions := map[string]string{
		"ring": ring2, "unread": unread, "wrong": "devices.slice(0, 1).all(d, d.attributes['mla.example.com'].missing == 1)", "invalid": "devices +",
	}
	transcript.Run(t, filepath.Join("testdata", "searches.txt"), func(t *testing.T, input string) string {
		what, cycles, _ := strings.Cut(input, ":")
		words := strings.Fields(what)
		c := claim(2)
		if expression := expressions[words[0]]; expression != "" {
			constrain(t, c, words[0], expression)
		} else if words[0] == "attribute" {
			c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To[resourceapi.FullyQualifiedName](driver + "/index")}}
		}
		registry := compbase.NewKubeRegistry()
		ctx, pl := startMeasured(t, registry, !slices.Contains(words, "disabled"), class(), slice(0, 2, 3), c)
		for _, word := range words[1:] {
			switch word {
			case "ours":
				pl.mode = configv1alpha1.AllocatorAll
			case "cost=1":
				pl.allocators.Budget.Cost = 1
			case "steps=1":
				pl.allocators.Budget.Steps = 2
			}
		}
		for nodes := range strings.SplitSeq(cycles, ";") {
			state := framework.NewCycleState()
			if _, status := pl.PreFilter(ctx, state, pod(), nil); status.IsSuccess() {
				for _, name := range strings.Fields(nodes) {
					pl.Filter(ctx, state, pod(), node(name))
				}
			}
		}
		var lines []string
		for name, value := range plugintest.MetricValues(t, registry) {
			lines = append(lines, fmt.Sprint(name, " ", value))
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	})
}

// TestMetricsOfSearchesThatNobodyWaitsFor cancels searches, as kube-scheduler does when it has found enough feasible nodes.
func TestMetricsOfSearchesThatNobodyWaitsFor(t *testing.T) {
	registry := compbase.NewKubeRegistry()
	ctx, pl := startMeasured(t, registry, true, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	for _, end := range []func() (context.Context, context.CancelFunc){
		func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
		func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 0) },
	} {
		ended, cancel := end()
		cancel()
		pl.Filter(ended, state, pod(), node(nodeName))
	}
	values := plugintest.MetricValues(t, registry)
	require.EqualValues(t, 1, values["allocation_duration_seconds cel cancelled"])
	require.EqualValues(t, 1, values["allocation_duration_seconds cel timeout"])
}

// profile is a handle of another profile of the same scheduler.
type profile struct {
	*handle
	name string
}

func (p *profile) ProfileName() string { return p.name }

// TestFactoryUsesTheRegistryOfTheProcess checks that all profiles of a scheduler share its /metrics.
func TestFactoryUsesTheRegistryOfTheProcess(t *testing.T) {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	require.NoError(t, AddFeatureGates(gates))
	factory := NewFactory(gates)
	objects := []runtime.Object{claim(2)}
	ctx, h := newHandle(t, objects...)
	for _, name := range []string{"first", "second"} {
		_, err := factory(ctx, nil, &profile{h, name})
		require.NoError(t, err)
	}
	h.Start(ctx, t, objects...)
	values := plugintest.MetricValues(t, legacyregistry.DefaultGatherer)
	require.EqualValues(t, 1, values["claims none pending"])
}

// TestMistakesAreNotLogged checks that a mistake in a claim writes no log line. The status of the pod shows the mistake, and
// users could flood the log.
func TestMistakesAreNotLogged(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 1), constrain(t, claim(2), "c", "devices +"))
	ctx, log := plugintest.WithLog(ctx)
	_, status := pl.PreFilter(ctx, framework.NewCycleState(), pod(), nil)
	require.Contains(t, status.Message(), "Syntax error")
	require.Empty(t, log())
}
