// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/enrichment"
)

const (
	benchmarkNodes   = 1000
	benchmarkDevices = 16
	// rows is the maximum number of rows of an object.
	rows = v1alpha1.MaxAttributeRows
)

// plainCluster returns the ResourceSlices of 1,000 nodes with 16 devices. Each device has a key between 0 and 1,023.
func plainCluster() (all []*resourceapi.ResourceSlice) {
	for n := range benchmarkNodes {
		s := slice()
		s.Name = fmt.Sprintf("node-%d", n)
		s.Spec.NodeName, s.Spec.Pool.Name = ptr.To(s.Name), s.Name
		for d := range benchmarkDevices {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: fmt.Sprintf("mla-%d", d), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"key": {StringValue: ptr.To(fmt.Sprint((n*benchmarkDevices + d) % rows))},
			}})
		}
		all = append(all, s)
	}
	return all
}

// largeTable returns an object with the maximum number of rows. All devices of the cluster match a row.
func largeTable(generation int64) *v1alpha1.DeviceAttributes {
	object := plugintest.AttributesTable("large", nil)
	object.Generation = generation
	object.Spec.Table.Key = driver + "/key"
	for i := range int64(rows) {
		object.Spec.Table.Rows = append(object.Spec.Table.Rows, v1alpha1.AttributeRow{Key: fmt.Sprint(i), Values: map[string]resourceapi.DeviceAttribute{
			"x": {IntValue: ptr.To(i % benchmarkDevices / 4)}, "y": {IntValue: ptr.To(i % 4)}, "z": {IntValue: ptr.To(generation)},
		}})
	}
	return object
}

// benchmarked is a plugin with a pod that waits for a 2x2 block.
type benchmarked struct {
	*DynamicResourcesCEL
	handle *handle
	client *dynamicfake.FakeDynamicClient
	nodes  []fwk.NodeInfo
}

func newBenchmarked(b *testing.B, published []*resourceapi.ResourceSlice, objects ...*v1alpha1.DeviceAttributes) (context.Context, *benchmarked) {
	b.Helper()
	const values = "devices.map(d, d.attributes['topology.celset.dev'].%[1]s)"
	span := func(attribute string) string {
		return fmt.Sprintf(values+".max() - "+values+".min() == 1", attribute)
	}
	all := []runtime.Object{class(), constrain(b, claim(4), "block", span("x")+" && "+span("y")), waiting("pod", nothing)}
	for _, s := range published {
		all = append(all, s)
	}
	ctx, h := newHandle(b, all...)
	// The test logger formats each line, even if the line is not printed.
	ctx = klog.NewContext(ctx, klog.Background())
	client, shared, measured := plugintest.NewAttributesClient(b, objects...), newShared(), newMetrics(b)
	var err error
	shared.enrichment, err = enrichment.New(ctx, enrichment.Config{
		Client: client, Slices: h.Manager.ResourceSlices(), Informers: h.Factory, Leads: shared.guard.Leads, Recorder: h.EventRecorder,
		Metrics: measured, Clock: clock.RealClock{},
	})
	require.NoError(b, err)
	pl, err := newPlugin(ctx, nil, h, features(), true, measured, shared)
	require.NoError(b, err)
	h.Factory.Core().V1().Nodes().Informer()
	h.Start(ctx, b, all...)
	c, err := pl.resolver.Manager.ResourceClaims().Get("default", "claim")
	require.NoError(b, err)
	_, _, err = pl.prepared.Of(ctx, []*resourceapi.ResourceClaim{c})
	require.NoError(b, err)
	go shared.enrichment.Run(ctx)
	result := &benchmarked{DynamicResourcesCEL: pl, handle: h, client: client}
	for _, s := range published {
		result.nodes = append(result.nodes, node(s.Name))
	}
	return ctx, result
}

// cycle runs PreFilter, and Filter for all nodes. All nodes fit.
func (p *benchmarked) cycle(ctx context.Context, b *testing.B) {
	state := framework.NewCycleState()
	if _, status := p.PreFilter(ctx, state, pod(), nil); !status.IsSuccess() {
		b.Fatal(status)
	}
	for _, info := range p.nodes {
		if status := p.Filter(ctx, state, pod(), info); !status.IsSuccess() {
			b.Fatal(status)
		}
	}
}

// BenchmarkEnrichedCycle compares a cycle over 1,000 nodes whose devices have attributes of an object with a cycle over devices
// whose driver publishes the attributes. The two alternate, so that other work on the machine slows down both.
func BenchmarkEnrichedCycle(b *testing.B) {
	enriched, _, err := deviceattributes.Apply(b.Context(), []*v1alpha1.DeviceAttributes{largeTable(1)}, plainCluster(), nil)
	require.NoError(b, err)
	byDriver, driver := newBenchmarked(b, enriched)
	byObject, object := newBenchmarked(b, plainCluster(), largeTable(1))
	require.Eventually(b, func() bool { return len(object.handle.Activated()) > 0 }, waitFor, tick)
	took := [2][]time.Duration{}
	for i := 0; b.Loop(); i++ {
		for k := range took {
			// The order changes each time.
			j := (i + k) % len(took)
			began := time.Now()
			if j == 0 {
				driver.cycle(byDriver, b)
			} else {
				object.cycle(byObject, b)
			}
			if i > 0 {
				took[j] = append(took[j], time.Since(began))
			}
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	if len(took[0]) > 0 {
		b.ReportMetric(median(took[0])/1e6, "ms/driver")
		b.ReportMetric(median(took[1])/1e6, "ms/object")
		b.ReportMetric(median(took[1])/median(took[0]), "object/driver")
	}
}

// BenchmarkEnrichedList measures the list of ResourceSlices alone.
func BenchmarkEnrichedList(b *testing.B) {
	_, p := newBenchmarked(b, plainCluster(), largeTable(1))
	require.Eventually(b, func() bool { return len(p.handle.Activated()) > 0 }, waitFor, tick)
	for name, manager := range map[string]fwk.SharedDRAManager{"driver": p.handle.Manager, "object": p.resolver.Manager} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = manager.ResourceSlices().ListWithDeviceTaintRules()
			}
		})
	}
}

// BenchmarkChangedObject measures the time from a change of an object with 1,024 rows until the waiting pod is tried again. All
// 16,000 devices of 1,000 nodes change.
func BenchmarkChangedObject(b *testing.B) {
	ctx, p := newBenchmarked(b, plainCluster(), largeTable(1))
	await := func(n int) {
		for len(p.handle.Activated()) < n {
			time.Sleep(100 * time.Microsecond)
		}
	}
	await(1)
	for i := 1; b.Loop(); i++ {
		b.StopTimer()
		// The next change comes when the last one is over.
		time.Sleep(2 * time.Second)
		next := plugintest.Unstructured(b, largeTable(int64(i+1)))
		b.StartTimer()
		_, err := p.client.Resource(enrichment.Resource).Update(ctx, next, metav1.UpdateOptions{})
		require.NoError(b, err)
		await(i + 1)
	}
}
