// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/plugin/metrics"
)

// largeCluster has nodes with a 4x4 mesh each. Of nine out of ten, every other device is in
// use in such a manner that no two neighbours are free; of the tenth, none is. If serials is
// true devices have numbers of their own, which nobody asks for, so that no two nodes are equal.
func largeCluster(nodes int, serials bool) (objects []runtime.Object, infos []fwk.NodeInfo) {
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		s := slice()
		s.Name, s.Spec.Pool.Name, s.Spec.NodeName = name, name, ptr.To(name)
		inUse := claim(8)
		inUse.Name, inUse.UID = "in-use-"+name, types.UID(name)
		inUse.Status.Allocation = &resourceapi.AllocationResult{}
		for d := range int64(16) {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{
				Name: fmt.Sprintf("mla-%d", d),
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
					"row": {IntValue: ptr.To(d / 4)}, "col": {IntValue: ptr.To(d % 4)}, "model": {StringValue: ptr.To("mla-2")},
				},
			})
			if serials {
				s.Spec.Devices[d].Attributes["serial"] = resourceapi.DeviceAttribute{StringValue: ptr.To(fmt.Sprintf("%s-%d", name, d))}
			}
			if (d/4+d%4+int64(i))%2 == 0 {
				inUse.Status.Allocation.Devices.Results = append(inUse.Status.Allocation.Devices.Results,
					resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: driver, Pool: name, Device: fmt.Sprintf("mla-%d", d)})
			}
		}
		objects = append(objects, s)
		if i%10 != 0 {
			objects = append(objects, inUse)
		}
		info := framework.NewNodeInfo()
		info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		infos = append(infos, info)
	}
	return objects, infos
}

const square = `devices.map(d, d.attributes['mla.example.com'].row).max() - devices.map(d, d.attributes['mla.example.com'].row).min() == 1 &&
	devices.map(d, d.attributes['mla.example.com'].col).max() - devices.map(d, d.attributes['mla.example.com'].col).min() == 1`

// BenchmarkCycle is what the plugin adds to a scheduling cycle in a large cluster: its
// PreFilter, and its Filter on each node until as many are found as the scheduler wants.
// Four devices that form a square, with our allocator, are compared with any four, with
// upstream's. "visiting" passes over no node.
func BenchmarkCycle(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		for _, cluster := range []string{"fragmented", "fragmented-serials"} {
			for _, of := range []string{"ours", "visiting", "upstream"} {
				b.Run(fmt.Sprintf("cluster=%s/nodes=%d/allocator=%s", cluster, nodes, of), func(b *testing.B) {
					objects, infos := largeCluster(nodes, cluster == "fragmented-serials")
					benchmarkCycle(b, objects, infos, of)
				})
			}
		}
	}
}

func benchmarkCycle(b *testing.B, objects []runtime.Object, infos []fwk.NodeInfo, of string) {
	wanted := claim(4)
	if of != "upstream" {
		constrain(b, wanted, "square", square)
	}
	measureCycles(b, nil, features(), append(objects, class(), wanted), infos, enough, func(pl *DynamicResourcesCEL) {
		pl.isFirstAfterFilter = func() bool { return of == "ours" }
	})
}

// enough is how many nodes the scheduler wants to find among so many.
func enough(nodes int) int { return min(nodes, max(100, nodes*max(5, 50-nodes/125)/100)) }

// measureCycles runs a plugin that knows the objects, and returns on how many nodes the pod
// fits, which are not more than enough.
func measureCycles(b *testing.B, args runtime.Object, enabled plfeature.Features, objects []runtime.Object, infos []fwk.NodeInfo, enough func(nodes int) int, options ...func(*DynamicResourcesCEL)) (found int) {
	b.Helper()
	measured, err := metrics.New(compbase.NewKubeRegistry(), time.Now)
	if err != nil {
		b.Fatal(err)
	}
	ctx, h := newHandle(b, objects...)
	pl, err := newPlugin(ctx, args, h, enabled, true, measured, newShared())
	if err != nil {
		b.Fatal(err)
	}
	for _, option := range options {
		option(pl)
	}
	h.start(ctx, b, objects...)
	ctx = klog.NewContext(ctx, klog.Background())
	b.ReportAllocs()
	for b.Loop() {
		if found = runCycle(ctx, b, pl, infos, enough); found == 0 {
			b.Fatal("no node fits")
		}
	}
	return found
}

// runCycle returns on how many nodes the pod fits.
func runCycle(ctx context.Context, b *testing.B, pl *DynamicResourcesCEL, infos []fwk.NodeInfo, enough func(nodes int) int) (found int) {
	state := framework.NewCycleState()
	left, status := pl.PreFilter(ctx, state, pod(), infos)
	if !status.IsSuccess() {
		b.Fatal(status)
	}
	wanted := enough(len(infos))
	if !left.AllNodes() {
		wanted = enough(len(left.NodeNames))
	}
	for _, info := range infos {
		if !left.AllNodes() && !left.NodeNames.Has(info.Node().Name) {
			continue
		}
		switch status := pl.Filter(ctx, state, pod(), info); {
		case status.IsSuccess():
			if found++; found == wanted {
				return found
			}
		case status.Code() == fwk.Error:
			b.Fatal(status)
		}
	}
	return found
}
