// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package indoubt

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// Which devices are free the scheduler learns from upstream, which has one set of devices for all claims. Somebody
// who has a device no longer is taken out of it, whoever has it since: if a watch has missed something, claims that
// are gone are told of after those that came. So before a device is given away it is looked up whether a claim has it,
// claim by claim.

// Heard are the claims that the watch has told of.
type Heard interface {
	// Get returns a claim, nil if there is none.
	Get(namespace, name string) *resourceapi.ResourceClaim
	// With returns the claims that have a device for themselves.
	With(DeviceKey) []*resourceapi.ResourceClaim
}

// DeviceKey is "driver/pool/device".
type DeviceKey string

// keyOf is the key of a device that a claim has for itself, "" if others may have it, too.
func keyOf(result *resourceapi.DeviceRequestAllocationResult) DeviceKey {
	if ptr.Deref(result.AdminAccess, false) || result.ShareID != nil {
		return ""
	}
	return DeviceKey(result.Driver + "/" + result.Pool + "/" + result.Device)
}

// deviceIndex is the name of the index of claims by their devices.
const deviceIndex = "celset.dev/device"

// Index has an informer of claims look them up by devices.
func Index(informer cache.SharedIndexInformer) (Heard, error) {
	err := informer.AddIndexers(cache.Indexers{deviceIndex: func(object any) ([]string, error) {
		claim, is := object.(*resourceapi.ResourceClaim)
		if !is || claim.Status.Allocation == nil {
			return nil, nil
		}
		var keys []string
		for i := range claim.Status.Allocation.Devices.Results {
			if key := keyOf(&claim.Status.Allocation.Devices.Results[i]); key != "" {
				keys = append(keys, string(key))
			}
		}
		return keys, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("look up ResourceClaims by their devices: %w", err)
	}
	return indexed{informer.GetIndexer()}, nil
}

type indexed struct{ cache.Indexer }

func (i indexed) Get(namespace, name string) *resourceapi.ResourceClaim {
	object, exists, err := i.GetByKey(cache.NewObjectName(namespace, name).String())
	claim, is := object.(*resourceapi.ResourceClaim)
	if err != nil || !exists || !is {
		return nil
	}
	return claim
}

func (i indexed) With(key DeviceKey) []*resourceapi.ResourceClaim {
	// It fails where there is no such index, which Index has made.
	objects, _ := i.ByIndex(deviceIndex, string(key))
	var claims []*resourceapi.ResourceClaim
	for _, object := range objects {
		if claim, is := object.(*resourceapi.ResourceClaim); is {
			claims = append(claims, claim)
		}
	}
	return claims
}

// Check fails if another claim has one of the devices that a claim is about to get. Then nobody gets them until that
// is over.
func (w *Writes) Check(claim *resourceapi.ResourceClaim) error {
	if claim.Status.Allocation == nil {
		return nil
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		key := keyOf(result)
		if key == "" {
			continue
		}
		if owner := w.owner(key, claim.UID); owner != "" {
			w.contested[key] = *result
			return fmt.Errorf("device %s was about to go to claim %s, but claim %s has it: it is tried again with another one", key, klog.KObj(claim), owner)
		}
	}
	return nil
}

// owner is another claim that has a device, "" if none has. The mutex is locked.
func (w *Writes) owner(key DeviceKey, than types.UID) string {
	for _, other := range w.claimsHeard.With(key) {
		if other.UID != than {
			return klog.KObj(other).String()
		}
	}
	for uid, other := range w.claims {
		if uid == than || w.forgetHeard(uid, other) || other.stored == nil {
			continue
		}
		for i := range other.stored.devices {
			if keyOf(&other.stored.devices[i]) == key {
				return klog.KRef(other.namespace, other.name).String()
			}
		}
	}
	return ""
}

// contestedBy are the contested devices that a claim still has, other than the given one. The mutex is locked.
func (w *Writes) contestedBy(own types.UID) []resourceapi.DeviceRequestAllocationResult {
	var devices []resourceapi.DeviceRequestAllocationResult
	for key, device := range w.contested {
		if w.owner(key, "") == "" {
			delete(w.contested, key)
			continue
		}
		if w.owner(key, own) != "" {
			devices = append(devices, device)
		}
	}
	return devices
}
