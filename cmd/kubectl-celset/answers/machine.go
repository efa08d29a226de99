// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/models"
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
	objects, err := models.Nodes(ctx, m, models.Names(nodes))
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, slice := range objects.Slices {
		node := *slice.Spec.NodeName
		for i := range slice.Spec.Devices {
			if counts[node]++; counts[node] <= inUse {
				objects.Claims = append(objects.Claims, models.Holder(otherNamespace, node, slice, &slice.Spec.Devices[i], nil))
			}
		}
	}
	return objects, nil
}

// otherNamespace is the namespace of the claims that have devices of a machine.
const otherNamespace = "other"
