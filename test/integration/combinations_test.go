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

	"github.com/celset/celset/internal/testing/minor"
)

// In these tests a constraint stands beside another feature of claims, and devices
// are such that either alone would lead to other devices.

// TestConstraintDecidesWhichAlternativeANodeHas has a node with enough devices for
// the first alternative, no two of them neighbours. The constraint covers the
// first alternative only.
func TestConstraintDecidesWhichAlternativeANodeHas(t *testing.T) {
	t.Parallel()
	l := newLab(t, "alternatives", 2)
	big, small := l.family("big"), l.family("small")
	ring := newRing(t, big, 6)
	l.publish(t, ring, l.nodes...)
	l.publish(t, newRing(t, small, 4), l.nodes...)
	l.createClass(t, big.Driver)
	l.createClass(t, small.Driver)
	l.occupy(t, l.nodes[0], ring, "big-1", "big-3", "big-5")
	l.occupy(t, l.nodes[1], ring, "big-0", "big-2", "big-5")
	claim := []part{
		firstAvailable("mla", alternative("big", big.Driver, 2), alternative("small", small.Driver, 3)),
		constrained("pair", contiguous(big.Driver, 2), "mla/big"),
	}

	l.run(t, "first", celsetProfile, claim...)
	l.requireRunning(t, "first")
	require.Equal(t, l.nodes[1], l.pod(t, "first").Spec.NodeName)
	require.Equal(t, []string{"big-3", "big-4"}, l.devicesOf(t, "first"))
	require.Equal(t, []string{"mla/big", "mla/big"}, requestsOf(l.claim(t, "first")))

	l.createClaim(t, "second", claim...)
	l.createPodOn(t, l.nodes[0], "second", celsetProfile, "second")
	l.requireRunning(t, "second")
	require.Equal(t, []string{"small-0", "small-1", "small-2"}, l.devicesOf(t, "second"))
	require.Equal(t, []string{"mla/small", "mla/small", "mla/small"}, requestsOf(l.claim(t, "second")))
}

// TestConstraintHoldsForAdminAccess has an administrator look at a set of devices
// that others use, among them one of the four that are free.
func TestConstraintHoldsForAdminAccess(t *testing.T) {
	t.Parallel()
	l := newLab(t, "admin", 1)
	ring := l.ring(t, 8)
	driver := ring.Drivers()[0]
	l.occupy(t, l.nodes[0], ring, "mla-3", "mla-4", "mla-6", "mla-7")
	last := fmt.Sprintf("devices.all(d, d.attributes[%q].index >= 4)", driver)

	l.run(t, "user", celsetProfile, request("mla", driver, 4), constrained("last", last))
	l.requireRefused(t, "user", "constraint last: no set of 4 free devices satisfies it")
	l.run(t, "admin", celsetProfile, request("mla", driver, 4), withAdminAccess, constrained("last", last))
	l.requireRunning(t, "admin")
	require.Equal(t, []string{"mla-4", "mla-5", "mla-6", "mla-7"}, l.devicesOf(t, "admin"))
	for _, result := range l.claim(t, "admin").Status.Allocation.Devices.Results {
		require.NotNil(t, result.AdminAccess)
		require.True(t, *result.AdminAccess)
	}

	// The free one is still free.
	l.run(t, "users", celsetProfile, request("mla", driver, 4), constrained("any", "true"))
	l.requireRunning(t, "users")
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2", "mla-5"}, l.devicesOf(t, "users"))
}

// TestConstraintHoldsForPartitions has two GPUs that can be used whole or as halves,
// with a half of the first in use. The two halves that a pod wants are to be of one
// GPU.
func TestConstraintHoldsForPartitions(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAPartitionableDevices)
	minor.NeedsVersion(t, "1.35", "slices with counters alone")
	t.Parallel()
	l := newLab(t, "partitions", 1)
	driver := l.family("gpu").Driver
	l.publishGPUs(t, driver, 2)
	half := request("half", driver+".half", 2)
	oneGPU := constrained("one_gpu", fmt.Sprintf("devices.all(d, d.attributes[%[1]q].gpu == devices[0].attributes[%[1]q].gpu)", driver))

	l.run(t, "blocker", celsetProfile, request("half", driver+".half", 1))
	l.requireRunning(t, "blocker")
	require.Equal(t, []string{"gpu-0-half-0"}, l.devicesOf(t, "blocker"))
	l.run(t, "any", stockProfile, half)
	l.requireRunning(t, "any")
	require.Equal(t, []string{"gpu-0-half-1", "gpu-1-half-0"}, l.devicesOf(t, "any"))
	l.deletePod(t, "any")
	l.requireFreed(t, "any")

	l.run(t, "pair", celsetProfile, half, oneGPU)
	l.requireRunning(t, "pair")
	require.Equal(t, []string{"gpu-1-half-0", "gpu-1-half-1"}, l.devicesOf(t, "pair"))
	l.run(t, "whole", celsetProfile, request("whole", driver+".whole", 1), constrained("any", "true"))
	l.requireRefused(t, "whole", "no combination of free devices meets all requests and constraints")
	l.deletePod(t, "blocker")
	l.requireRunning(t, "whole")
	require.Equal(t, []string{"gpu-0-whole"}, l.devicesOf(t, "whole"))
}

// publishGPUs publishes n GPUs of two halves each on the first node, with a class
// for whole ones, <driver>.whole, and one for halves, <driver>.half. What a GPU has
// is in counters (KEP-4815).
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
	createSlice(t, counters)
	createSlice(t, devices)
	for class, size := range map[string]int{"whole": 2, "half": 1} {
		spec := classOf(driver)
		spec.Selectors = append(spec.Selectors, selector(fmt.Sprintf("device.attributes[%q].halves == %d", driver, size)))
		l.createClassWithSpec(t, driver+"."+class, spec)
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

// TestConstraintSeesAShareAsItsDevice has three NICs that are shared by bandwidth,
// with most of the first in use. The two shares that a pod wants are to be of one
// NIC, which then stands in devices twice.
func TestConstraintSeesAShareAsItsDevice(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAConsumableCapacity)
	t.Parallel()
	l := newLab(t, "shares", 1)
	driver := l.family("nic").Driver
	nics := l.slice("nics", driver, 1)
	for i := range 3 {
		nics.Spec.Devices = append(nics.Spec.Devices, sharedNIC(fmt.Sprintf("nic-%d", i)))
	}
	createSlice(t, nics)
	l.createClass(t, driver)
	oneNIC := constrained("one_nic", "devices.all(a, devices.all(b, a == b))")

	l.run(t, "blocker", celsetProfile, share("all", driver, "5500M"))
	l.requireRunning(t, "blocker")
	require.Empty(t, cmp.Diff([]string{"nic-0 6G"}, l.sharesOf(t, "blocker")), "rounded up to whole G")

	l.run(t, "any", celsetProfile, share("tx", driver, "4G"), share("rx", driver, "4G"))
	l.requireRunning(t, "any")
	require.Empty(t, cmp.Diff([]string{"nic-0 4G", "nic-1 4G"}, l.sharesOf(t, "any")))
	l.deletePod(t, "any")
	l.requireFreed(t, "any")

	for _, want := range []struct{ pod, nic string }{{"first", "nic-1"}, {"second", "nic-2"}} {
		l.run(t, want.pod, celsetProfile, share("tx", driver, "4G"), share("rx", driver, "4G"), oneNIC)
		l.requireRunning(t, want.pod)
		require.Empty(t, cmp.Diff([]string{want.nic + " 4G", want.nic + " 4G"}, l.sharesOf(t, want.pod)))
	}
	l.run(t, "third", celsetProfile, share("tx", driver, "1G"), share("rx", driver, "3500M"), oneNIC)
	l.requireRefused(t, "third", "constraint one_nic")
	l.run(t, "fits", celsetProfile, share("tx", driver, "1G"), share("rx", driver, "3G"), oneNIC)
	l.requireRunning(t, "fits")
	require.Empty(t, cmp.Diff([]string{"nic-0 1G", "nic-0 3G"}, l.sharesOf(t, "fits")))
}

const bandwidth = "bandwidth"

// sharedNIC has 10G, to be had in steps of 1G (KEP-5075).
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

// share wants a part of the bandwidth of one device.
func share(name, class, amount string) part {
	return exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class,
		Capacity: &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
			bandwidth: resource.MustParse(amount),
		}},
	})
}

// sharesOf lists device and bandwidth of what the claim of that name has. Each share
// must have an ID of its own.
func (l *lab) sharesOf(t *testing.T, claim string) []string {
	t.Helper()
	var shares []string
	ids := map[string]bool{}
	for _, result := range l.claim(t, claim).Status.Allocation.Devices.Results {
		require.NotNil(t, result.ShareID)
		require.False(t, ids[string(*result.ShareID)], "share %s twice", *result.ShareID)
		ids[string(*result.ShareID)] = true
		consumed := result.ConsumedCapacity[bandwidth]
		shares = append(shares, result.Device+" "+consumed.String())
	}
	return shares
}

// slice is a slice without content of a pool of the first node that has so many.
func (l *lab) slice(name, driver string, slices int64) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace + "-" + name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			NodeName: &l.nodes[0],
			Pool:     resourceapi.ResourcePool{Name: l.nodes[0], Generation: 1, ResourceSliceCount: slices},
		},
	}
}

// requestsOf names the request, or the alternative, that each device is for.
func requestsOf(claim *resourceapi.ResourceClaim) []string {
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Request)
	}
	return names
}
