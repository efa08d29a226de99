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

// DoubleAllocationError means that two claims have the same device. It is a bug of a scheduler, or of two schedulers that don't
// coordinate. The driver limits the damage: it does not prepare the second claim as long as the first is prepared.
type DoubleAllocationError struct {
	Driver, Pool, Device string
	// Claim is the claim that is refused. Holder is the claim that already has the device. They are equal if one claim has a
	// device twice.
	Claim, Holder       types.NamespacedName
	ClaimUID, HolderUID types.UID
	// Checkpoint is the path of the driver's checkpoint file, which lists Holder as prepared.
	Checkpoint string
}

func (e *DoubleAllocationError) Error() string {
	if e.ClaimUID == e.HolderUID {
		return fmt.Sprintf("double allocation: device %s of pool %s, driver %s, is allocated to claim %s (UID %s) twice",
			e.Device, e.Pool, e.Driver, e.Claim, e.ClaimUID)
	}
	return fmt.Sprintf("double allocation: device %s of pool %s, driver %s, is allocated to claim %s (UID %s), but is prepared for claim %s (UID %s): "+
		"delete the pods of one of the two claims; if the second claim no longer exists, drain the node, delete %s and restart the driver",
		e.Device, e.Pool, e.Driver, e.Claim, e.ClaimUID, e.Holder, e.HolderUID, e.Checkpoint)
}

// refuseDouble returns an error if a wanted device is prepared for another claim, and counts and logs it. A device with admin
// access, or another share of a device, is no double allocation.
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

// doubles returns the wanted devices that other claims have, or that the claim has twice.
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

// A holder is a prepared claim that has a device.
type holder struct {
	types.NamespacedName
	UID types.UID
}

// A heldDevice identifies a device, or a share of a device, of this driver. The pool is not part of it, because there is only
// one.
type heldDevice struct {
	name  string
	share types.UID
}

func held(device checkpoint.Device) heldDevice {
	return heldDevice{name: device.Name, share: device.Share}
}

// holdersOf returns, for each prepared device or share, the claim that has it.
func holdersOf(state checkpoint.State) map[heldDevice]holder {
	holders := map[heldDevice]holder{}
	// Use a fixed order, so that messages are the same each time even if a checkpoint has a device in two claims.
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
