// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/celset/celset/test/topologydriver/checkpoint"
)

// DoubleAllocationError means that two claims were given the same device. It is a mistake
// of a scheduler, or of two that don't know of each other. The driver is where it ends:
// the second claim is never prepared while the first is.
type DoubleAllocationError struct {
	Driver, Pool, Device string
	// Claim is the one that is refused, Holder the one that has the device. They are the
	// same if one claim was given a device twice.
	Claim, Holder       types.NamespacedName
	ClaimUID, HolderUID types.UID
	// Checkpoint is the path of the file in which the holder is recorded.
	Checkpoint string
}

func (e *DoubleAllocationError) Error() string {
	if e.ClaimUID == e.HolderUID {
		return fmt.Sprintf("double allocation: device %s of pool %s, driver %s, is allocated to claim %s (UID %s) twice",
			e.Device, e.Pool, e.Driver, e.Claim, e.ClaimUID)
	}
	return fmt.Sprintf("double allocation: device %s of pool %s, driver %s, is allocated to claim %s (UID %s), but is prepared for claim %s (UID %s): "+
		"delete the pods of one of the two; if the latter does not exist any more, the kubelet has forgotten it: drain the node, delete %s and restart the driver",
		e.Device, e.Pool, e.Driver, e.Claim, e.ClaimUID, e.Holder, e.HolderUID, e.Checkpoint)
}

// refuseDouble fails if a device is prepared for another claim, and makes sure that
// somebody notices. Administrators' access is beside any claim, and shares of a device are
// beside each other.
func (d *Driver) refuseDouble(ctx context.Context, state checkpoint.State, claim *resourceapi.ResourceClaim, wanted []checkpoint.Device) error {
	var errs []error
	for _, double := range d.doubles(state, claim, wanted) {
		d.metrics.doubleAllocation(d.name)
		klog.FromContext(ctx).Error(double, "Double allocation", "driver", d.name, "pool", double.Pool, "device", double.Device,
			"claim", klog.KObj(claim), "claimUID", claim.UID,
			"holder", klog.KRef(double.Holder.Namespace, double.Holder.Name), "holderUID", double.HolderUID)
		errs = append(errs, double)
	}
	return errors.Join(errs...)
}

// doubles are the devices of a claim that others have, or that it has twice.
func (d *Driver) doubles(state checkpoint.State, claim *resourceapi.ResourceClaim, wanted []checkpoint.Device) []*DoubleAllocationError {
	holders := holdersOf(state)
	var found []*DoubleAllocationError
	for _, device := range wanted {
		if device.Admin {
			continue
		}
		own := holder{UID: claim.UID, NamespacedName: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}}
		if other, taken := holders[held(device)]; taken {
			found = append(found, &DoubleAllocationError{
				Driver: d.name, Pool: device.Pool, Device: device.Name, Checkpoint: d.checkpoint.Path(),
				Claim: own.NamespacedName, ClaimUID: own.UID, Holder: other.NamespacedName, HolderUID: other.UID,
			})
			continue
		}
		holders[held(device)] = own
	}
	return found
}

// holder is a claim that has a device.
type holder struct {
	types.NamespacedName
	UID types.UID
}

// heldDevice is what one claim can have: a device, or a share of one. There is one pool.
type heldDevice struct {
	name  string
	share types.UID
}

func held(device checkpoint.Device) heldDevice {
	return heldDevice{name: device.Name, share: device.Share}
}

// holdersOf are the claims that have devices or shares of them.
func holdersOf(state checkpoint.State) map[heldDevice]holder {
	holders := map[heldDevice]holder{}
	// Sorted, so that messages don't depend on chance should a checkpoint have a device
	// twice.
	for _, uid := range slices.SortedFunc(maps.Keys(state.Claims), cmp.Compare[types.UID]) {
		claim := state.Claims[uid]
		for _, device := range claim.Devices {
			if !device.Admin {
				holders[held(device)] = holder{UID: uid, NamespacedName: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}}
			}
		}
	}
	return holders
}
