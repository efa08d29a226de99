// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/machine"
)

// machines lists the models of machines.
func machines() []Machine {
	result := []Machine{}
	for _, m := range machine.All() {
		result = append(result, Machine{Name: m.Name, Title: m.Title, Drivers: m.Drivers()})
	}
	return result
}

// machineObjects returns nodes with the devices of a machine, and the DeviceClasses of the machine. On each node, other claims
// have the first inUse devices.
func machineObjects(ctx context.Context, name string, nodes, inUse int) (*clusterstate.Objects, error) {
	m, err := machine.ByName(name)
	if err != nil {
		return nil, err
	}
	if nodes < 1 || nodes > MaxNodes {
		return nil, fmt.Errorf("nodes: %d: must be from 1 to %d", nodes, MaxNodes)
	}
	if inUse < 0 {
		return nil, fmt.Errorf("inUse: %d: must not be negative", inUse)
	}
	objects := &clusterstate.Objects{Classes: m.DeviceClasses()}
	for i := range nodes {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		node := fmt.Sprintf("node-%d", i+1)
		published, err := m.ResourceSlices(node)
		if err != nil {
			return nil, err
		}
		objects.Nodes = append(objects.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{corev1.LabelHostname: node}}})
		objects.Slices = append(objects.Slices, published...)
		objects.Claims = append(objects.Claims, inUseOf(published, node, inUse)...)
	}
	return objects, nil
}

// otherNamespace is the namespace of the claims that have devices of a machine.
const otherNamespace = "other"

// inUseOf returns a claim for each of the first devices of a node.
func inUseOf(published []*resourceapi.ResourceSlice, node string, inUse int) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for _, slice := range published {
		for i := range slice.Spec.Devices {
			if len(claims) == inUse {
				return claims
			}
			claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: otherNamespace, Name: fmt.Sprintf("%s-job-%d", node, len(claims)+1)}}
			claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "device"}}
			claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{
				Request: "device", Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: slice.Spec.Devices[i].Name,
			}}}}
			claims = append(claims, claim)
		}
	}
	return claims
}
