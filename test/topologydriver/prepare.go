// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"github.com/celset/celset/test/topologydriver/cdi"
	"github.com/celset/celset/test/topologydriver/checkpoint"
)

// load reads the checkpoint.
func (d *Driver) load() (checkpoint.State, error) {
	state, err := d.checkpoint.Load()
	if err == nil {
		d.metrics.prepared(d.name, state)
	}
	return state, err
}

// store writes the checkpoint.
func (d *Driver) store(state checkpoint.State) error {
	err := d.checkpoint.Store(state)
	if err == nil {
		d.metrics.prepared(d.name, state)
	}
	return err
}

// PrepareResourceClaims prepares claims before the kubelet starts their containers, see [kubeletplugin.DRAPlugin]. If one claim
// fails, the others are still prepared.
func (d *Driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	state, err := d.load()
	if err != nil {
		return nil, err
	}
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		begin := time.Now()
		var devices []kubeletplugin.Device
		if state, devices, err = d.prepare(ctx, state, claim); err != nil {
			err = fmt.Errorf("driver %s: claim %s: %w", d.name, klog.KObj(claim), err)
		}
		d.metrics.observe(d.name, operationPrepare, begin, err)
		results[claim.UID] = kubeletplugin.PrepareResult{Err: err, Devices: devices}
	}
	return results, nil
}

// prepare prepares one claim and returns the new state. On an error it returns the unchanged state.
func (d *Driver) prepare(ctx context.Context, state checkpoint.State, claim *resourceapi.ResourceClaim) (checkpoint.State, []kubeletplugin.Device, error) {
	wanted, err := d.allocated(claim)
	if err != nil || len(wanted) == 0 {
		return state, nil, err
	}
	prepared, known := state.Claims[claim.UID]
	if known && !slices.EqualFunc(prepared.Devices, wanted, sameDevice) {
		return state, nil, fmt.Errorf("is prepared with %s, but its allocation now has %s: end the pods that use the claim, so that the kubelet unprepares it",
			names(prepared.Devices), names(wanted))
	}
	if !known {
		if prepared, err = d.admit(ctx, state, claim, wanted); err != nil {
			return state, nil, err
		}
		next := state.With(claim.UID, prepared)
		// Store the state before the CDI spec exists. So each device that a container can use is recorded as in use.
		if err := d.store(next); err != nil {
			return state, nil, err
		}
		state = next
	}
	devices, err := d.expose(claim.UID, prepared)
	return state, devices, err
}

// admit returns the checkpoint entry for a claim with the wanted devices. It returns an error if another claim has one of the
// devices.
func (d *Driver) admit(ctx context.Context, state checkpoint.State, claim *resourceapi.ResourceClaim, wanted []checkpoint.Device) (checkpoint.Claim, error) {
	if err := d.refuseDouble(ctx, state, claim, wanted); err != nil {
		return checkpoint.Claim{}, err
	}
	devices, err := d.withPublished(wanted)
	return checkpoint.Claim{Namespace: claim.Namespace, Name: claim.Name, Devices: devices}, err
}

// expose writes the CDI spec of a prepared claim. It writes an existing spec again, because a reboot empties the directory of
// specs.
func (d *Driver) expose(uid types.UID, claim checkpoint.Claim) ([]kubeletplugin.Device, error) {
	told := make([]cdi.Device, len(claim.Devices))
	for i, device := range claim.Devices {
		told[i] = cdi.Device{
			Driver: d.name, Pool: device.Pool, Name: device.Name, Share: device.Share,
			Attributes: device.Attributes, Capacity: device.Capacity,
		}
	}
	ids, err := d.specs.Write(uid, told)
	if err != nil {
		return nil, err
	}
	result := make([]kubeletplugin.Device, len(ids))
	for i, device := range claim.Devices {
		result[i] = kubeletplugin.Device{
			Requests: []string{device.Request}, PoolName: device.Pool, DeviceName: device.Name, CDIDeviceIDs: []string{ids[i]},
		}
		if device.Share != "" {
			result[i].ShareID = &device.Share
		}
	}
	return result, nil
}

// UnprepareResourceClaims releases the devices of claims. The kubelet calls it after all containers that use the claims have
// ended, see [kubeletplugin.DRAPlugin]. It is no error if a claim is not prepared.
func (d *Driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	state, err := d.load()
	if err != nil {
		return nil, err
	}
	results := map[types.UID]error{}
	for _, claim := range claims {
		begin := time.Now()
		if state, err = d.unprepare(state, claim.UID); err != nil {
			err = fmt.Errorf("driver %s: claim %s: %w", d.name, claim.NamespacedName, err)
		}
		d.metrics.observe(d.name, operationUnprepare, begin, err)
		results[claim.UID] = err
	}
	return results, nil
}

// unprepare first removes the claim's CDI spec, and then removes the claim from the state. It removes a spec even if the claim
// is not in the state, because the checkpoint may have been deleted.
func (d *Driver) unprepare(state checkpoint.State, uid types.UID) (checkpoint.State, error) {
	if err := d.specs.Remove(uid); err != nil {
		return state, err
	}
	if _, known := state.Claims[uid]; !known {
		return state, nil
	}
	next := state.Without(uid)
	if err := d.store(next); err != nil {
		return state, err
	}
	return next, nil
}
