// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package models makes the objects of simulated nodes: nodes with the devices of a model of a machine, and claims that have such
// devices. Answers about documents and test cases use them in place of a cluster.
//
//	objects, err := models.Nodes(ctx, model, models.Names(2))
//	objects.Claims = append(objects.Claims, models.Holder("other", "node-1", slice, &slice.Spec.Devices[0], nil))
package models

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/machine"
)

// Names returns the names of simulated nodes: node-1, node-2 and so on.
func Names(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i+1)
	}
	return names
}

// Nodes returns a node for each name, with the devices of a model, and the DeviceClasses of the model.
func Nodes(ctx context.Context, model machine.Machine, names []string) (*clusterstate.Objects, error) {
	objects := &clusterstate.Objects{Classes: model.DeviceClasses()}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		published, err := model.ResourceSlices(name)
		if err != nil {
			return nil, err
		}
		objects.Slices = append(objects.Slices, published...)
		objects.Nodes = append(objects.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}})
	}
	return objects, nil
}

// Holder returns an allocated claim that has a device of a node. The claim is in the given namespace. If claims can share the
// device, the claim gets the share of each capacity in share. It gets the whole of a capacity that share lacks.
func Holder(namespace, node string, slice *resourceapi.ResourceSlice, device *resourceapi.Device, share map[resourceapi.QualifiedName]apiresource.Quantity) *resourceapi.ResourceClaim {
	const request = "device"
	result := resourceapi.DeviceRequestAllocationResult{Request: request, Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: node + "." + device.Name}}
	if ptr.Deref(device.AllowMultipleAllocations, false) {
		result.ShareID = ptr.To(types.UID(claim.Name))
		result.ConsumedCapacity = map[resourceapi.QualifiedName]apiresource.Quantity{}
		for name, capacity := range device.Capacity {
			result.ConsumedCapacity[name] = capacity.Value
			if part, ok := share[name]; ok {
				result.ConsumedCapacity[name] = part
			}
		}
	}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: request}}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{result},
	}}
	return claim
}
