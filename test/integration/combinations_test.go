// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// These tests combine a constraint with another feature of claims. Without either of the two, the claim would get other
// devices.

// TestConstraintHoldsForPartitions publishes two GPUs that can be allocated whole or as halves. A half of the first GPU is in
// use. A pod that requests two halves of the same GPU must get the second GPU.
func TestConstraintHoldsForPartitions(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAPartitionableDevices)
	minor.NeedsVersion(t, "1.35", "slices with counters alone")
	t.Parallel()
	l := newLab(t, "partitions", 1)
	driver := l.Family("gpu").Driver
	l.publishGPUs(t, driver, 2)
	half := env.Request("half", driver+".half", 2)
	oneGPU := env.Constrained("one_gpu", fmt.Sprintf("devices.all(d, d.attributes[%[1]q].gpu == devices[0].attributes[%[1]q].gpu)", driver))

	l.Run(t, "blocker", env.CelsetProfile, env.Request("half", driver+".half", 1))
	l.RequireRunning(t, "blocker")
	require.Equal(t, []string{"gpu-0-half-0"}, l.DevicesOf(t, "blocker"))
	l.Run(t, "any", env.StockProfile, half)
	l.RequireRunning(t, "any")
	require.Equal(t, []string{"gpu-0-half-1", "gpu-1-half-0"}, l.DevicesOf(t, "any"))
	l.DeletePod(t, "any")
	l.RequireFreed(t, "any")

	l.Run(t, "pair", env.CelsetProfile, half, oneGPU)
	l.RequireRunning(t, "pair")
	require.Equal(t, []string{"gpu-1-half-0", "gpu-1-half-1"}, l.DevicesOf(t, "pair"))
	l.Run(t, "whole", env.CelsetProfile, env.Request("whole", driver+".whole", 1), env.Constrained("any", "true"))
	l.RequireRefused(t, "whole", "no combination of free devices meets all requests and constraints")
	l.DeletePod(t, "blocker")
	l.RequireRunning(t, "whole")
	require.Equal(t, []string{"gpu-0-whole"}, l.DevicesOf(t, "whole"))
}

// publishGPUs publishes n GPUs with two halves each on the first node, and creates the classes <driver>.whole and
// <driver>.half. Counters ensure that a whole GPU and its halves are not allocated together (KEP-4815).
func (l *lab) publishGPUs(t *testing.T, driver string, n int) {
	t.Helper()
	counters := l.slice("counters", driver, 2)
	devices := l.slice("devices", driver, 2)
	for gpu := range n {
		set := fmt.Sprintf("gpu-%d", gpu)
		counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourceapi.CounterSet{Name: set, Counters: halves(2)})
		devices.Spec.Devices = append(devices.Spec.Devices,
			partition(set+"-whole", set, gpu, 2), partition(set+"-half-0", set, gpu, 1), partition(set+"-half-1", set, gpu, 1))
	}
	cluster.CreateSlice(t, counters)
	cluster.CreateSlice(t, devices)
	for class, size := range map[string]int{"whole": 2, "half": 1} {
		spec := env.ClassOf(driver)
		spec.Selectors = append(spec.Selectors, env.Selector(fmt.Sprintf("device.attributes[%q].halves == %d", driver, size)))
		l.CreateClassWithSpec(t, driver+"."+class, spec)
	}
}

func partition(name, set string, gpu, size int) resourceapi.Device {
	return resourceapi.Device{
		Name: name,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"gpu":    {IntValue: new(int64(gpu))},
			"halves": {IntValue: new(int64(size))},
		},
		ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: halves(size)}},
	}
}

func halves(n int) map[string]resourceapi.Counter {
	return map[string]resourceapi.Counter{"halves": {Value: *resource.NewQuantity(int64(n), resource.DecimalSI)}}
}

// TestConstraintSeesAShareAsItsDevice publishes three NICs whose bandwidth can be shared. Most of the first NIC is in use. A
// pod requests two shares that must be of the same NIC, so the variable `devices` contains the NIC twice.
func TestConstraintSeesAShareAsItsDevice(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAConsumableCapacity)
	t.Parallel()
	l := newLab(t, "shares", 1)
	driver := l.Family("nic").Driver
	nics := l.slice("nics", driver, 1)
	for i := range 3 {
		nics.Spec.Devices = append(nics.Spec.Devices, sharedNIC(fmt.Sprintf("nic-%d", i)))
	}
	cluster.CreateSlice(t, nics)
	l.CreateClass(t, driver)
	oneNIC := env.Constrained("one_nic", "devices.all(a, devices.all(b, a == b))")

	l.Run(t, "blocker", env.CelsetProfile, share("all", driver, "5500M"))
	l.RequireRunning(t, "blocker")
	require.Empty(t, cmp.Diff([]string{"nic-0 6G"}, l.sharesOf(t, "blocker")), "rounded up to whole G")

	l.Run(t, "any", env.CelsetProfile, share("tx", driver, "4G"), share("rx", driver, "4G"))
	l.RequireRunning(t, "any")
	require.Empty(t, cmp.Diff([]string{"nic-0 4G", "nic-1 4G"}, l.sharesOf(t, "any")))
	l.DeletePod(t, "any")
	l.RequireFreed(t, "any")

	for _, want := range []struct{ pod, nic string }{{"first", "nic-1"}, {"second", "nic-2"}} {
		l.Run(t, want.pod, env.CelsetProfile, share("tx", driver, "4G"), share("rx", driver, "4G"), oneNIC)
		l.RequireRunning(t, want.pod)
		require.Empty(t, cmp.Diff([]string{want.nic + " 4G", want.nic + " 4G"}, l.sharesOf(t, want.pod)))
	}
	l.Run(t, "third", env.CelsetProfile, share("tx", driver, "1G"), share("rx", driver, "3500M"), oneNIC)
	l.RequireRefused(t, "third", "constraint one_nic")
	l.Run(t, "fits", env.CelsetProfile, share("tx", driver, "1G"), share("rx", driver, "3G"), oneNIC)
	l.RequireRunning(t, "fits")
	require.Empty(t, cmp.Diff([]string{"nic-0 1G", "nic-0 3G"}, l.sharesOf(t, "fits")))
}

const bandwidth = "bandwidth"

// sharedNIC returns a NIC with a bandwidth of 10G, which claims can consume in steps of 1G (KEP-5075).
func sharedNIC(name string) resourceapi.Device {
	step := resource.MustParse("1G")
	return resourceapi.Device{
		Name:                     name,
		AllowMultipleAllocations: new(true),
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{bandwidth: {
			Value: resource.MustParse("10G"),
			RequestPolicy: &resourceapi.CapacityRequestPolicy{
				Default:    &step,
				ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &step, Step: &step},
			},
		}},
	}
}

// share returns a part of a claim: a request for an amount of one device's bandwidth.
func share(name, class, amount string) env.Part {
	return env.Exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class,
		Capacity: &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
			bandwidth: resource.MustParse(amount),
		}},
	})
}

// sharesOf returns the devices in a claim, each with the allocated bandwidth. It requires that each share has a different ID.
func (l *lab) sharesOf(t *testing.T, claim string) []string {
	t.Helper()
	var shares []string
	ids := map[string]bool{}
	for _, result := range l.Claim(t, claim).Status.Allocation.Devices.Results {
		require.NotNil(t, result.ShareID)
		require.False(t, ids[string(*result.ShareID)], "share %s twice", *result.ShareID)
		ids[string(*result.ShareID)] = true
		consumed := result.ConsumedCapacity[bandwidth]
		shares = append(shares, result.Device+" "+consumed.String())
	}
	return shares
}

// slice returns a ResourceSlice without devices, for a pool of the first node. slices is the number of slices in the pool.
func (l *lab) slice(name, driver string, slices int64) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: l.Namespace + "-" + name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			NodeName: &l.Nodes[0],
			Pool:     resourceapi.ResourcePool{Name: l.Nodes[0], Generation: 1, ResourceSliceCount: slices},
		},
	}
}

// requestsOf returns, for each allocated device, the name of its request or alternative.
func requestsOf(claim *resourceapi.ResourceClaim) []string {
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Request)
	}
	return names
}
