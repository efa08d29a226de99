// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
)

// Write is an update of a claim's status that allocates devices. It is not stored yet.
type Write struct {
	Claim
	// Replaces is the version of the claim that the write replaces.
	Replaces string
	Results  []resourceapi.DeviceRequestAllocationResult
	// DryRun is true if the API server will not store the write.
	DryRun bool
}

// Judge admits a write and returns nil, or returns a refusal. It may read from the API server until the context ends.
func (g *Guard) Judge(ctx context.Context, w *Write) *Refusal {
	if refusal := w.check(); refusal != nil {
		return refusal
	}
	j := judgement{guard: g, write: w, asked: sets.New[types.UID](), published: map[string]bool{}, live: map[poolID]*allocator.PublishedPool{}}
	for {
		obstacle := j.try()
		if obstacle == nil || obstacle.refusal.Reason != Overlaps {
			return obstacle.refuse()
		}
		news, err := j.lookAgain(ctx, obstacle)
		if err != nil {
			return obstacle.unconfirmed(err)
		}
		if !news {
			return obstacle.refuse()
		}
	}
}

// check validates the write alone, without other claims. The API server may not have validated the write yet.
func (w *Write) check() *Refusal {
	if !isUpTo(w.Replaces, w.Replaces) || w.UID == "" {
		return &Refusal{Reason: Invalid, Message: fmt.Sprintf("the former claim has UID %q and version %q: both must match a stored claim", w.UID, w.Replaces)}
	}
	if len(w.Results) > maxResults {
		return &Refusal{Reason: Invalid, Message: fmt.Sprintf("the allocation has %d devices, the limit is %d", len(w.Results), maxResults)}
	}
	for i := range w.Results {
		if bytes := w.Results[i].Size(); bytes > maxResult {
			return &Refusal{Reason: Invalid, Message: fmt.Sprintf("device %d of the allocation has %d bytes, the limit is %d", i, bytes, maxResult)}
		}
	}
	return nil
}

// judgement is the progress of judging one write.
type judgement struct {
	guard *Guard
	write *Write
	// asked has the claims that were read for this write. published has the drivers whose slices were read. Each is read only
	// once, so the loop in Judge ends.
	asked     sets.Set[types.UID]
	published map[string]bool
	// live holds the pools of the write that are built from the slices just read. The driver of each pool is in published.
	live map[poolID]*allocator.PublishedPool
}

// obstacle is the reason why a write can't be admitted, according to the data that the guard has.
type obstacle struct {
	refusal Refusal
	// driver is the driver whose slices must be read. It is empty if reading slices can't help.
	driver   string
	inTheWay []holder
}

// holder is a claim that has a device or a part of it. If stored is false, an admitted write may give it the device at any
// moment.
type holder struct {
	Claim
	stored bool
}

// try admits the write, or returns an obstacle if the write conflicts with the data that the guard has.
func (j *judgement) try() *obstacle {
	g, w := j.guard, j.write
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range poolsOf(w.Results) {
		if obstacle := j.tryPool(id); obstacle != nil {
			return obstacle
		}
	}
	e := g.account.entries[w.UID]
	switch {
	case w.DryRun || e != nil && isNewer(e.version, w.Replaces):
		// Don't record the write, because it won't be stored: it is a dry run, or there is a newer version of the claim.
		return nil
	case g.account.admitted >= g.maxAdmitted:
		return &obstacle{refusal: Refusal{Reason: Overloaded, Message: fmt.Sprintf("%d admitted allocations are not stored yet; try again later", g.account.admitted)}}
	case e != nil && len(e.admitted) >= maxOfClaim:
		return &obstacle{refusal: Refusal{Reason: Overloaded, Message: fmt.Sprintf("%d admitted allocations of this claim are not stored yet; try again later", len(e.admitted))}}
	}
	g.account.admit(w, g.now())
	return nil
}

func (j *judgement) tryPool(id poolID) *obstacle {
	g, w := j.guard, j.write
	pool := j.live[id]
	if pool == nil {
		pool = g.catalog.pool(id)
	}
	var devices []string
	for i := range w.Results {
		if r := &w.Results[i]; r.Driver == id.driver && r.Pool == id.name {
			devices = append(devices, r.Device)
		}
	}
	if !j.published[id.driver] && slices.ContainsFunc(devices, func(device string) bool { return !pool.Has(device) }) {
		// A slice that the guard has not seen yet may contain the device.
		if len(j.published) == maxReads {
			return &obstacle{refusal: Refusal{Reason: Invalid, Message: fmt.Sprintf("the allocation has devices of more than %d drivers that are not published", maxReads)}}
		}
		return &obstacle{driver: id.driver, refusal: Refusal{Reason: Overlaps, Message: "the guard has not read all ResourceSlices of driver " + id.driver}}
	}
	if pool.Partitioned() {
		for device := range g.account.holders[id] {
			devices = append(devices, device)
		}
	}
	overlap := pool.Beside(g.account.others(w.UID, id, devices), w.Results)
	if overlap == nil {
		return nil
	}
	o := &obstacle{inTheWay: g.account.inTheWay(w.UID, overlap.InTheWay)}
	o.refusal = Refusal{Reason: Overlaps, Message: fmt.Sprintf("device %s %s", overlap.Device, overlap.Reason) + conflictingClaims(o.inTheWay, w.Namespace)}
	for _, h := range o.inTheWay {
		o.refusal.InTheWay = append(o.refusal.InTheWay, h.Claim)
	}
	if overlap.Stale {
		o.driver = id.driver
	}
	return o
}

func poolsOf(all results) []poolID {
	var pools []poolID
	for i := range all {
		if id := (poolID{all[i].Driver, all[i].Pool}); !slices.Contains(pools, id) {
			pools = append(pools, id)
		}
	}
	return pools
}

// inTheWay returns the claims that may have one of the devices or a part of it, sorted by name, without the claim except.
func (a *account) inTheWay(except types.UID, devices []structured.DeviceID) []holder {
	found := map[types.UID]holder{}
	for _, device := range devices {
		for uid := range a.holders[poolID{device.Driver.String(), device.Pool.String()}][device.Device.String()] {
			if e := a.entries[uid]; uid != except {
				stored := slices.ContainsFunc(e.stored, func(r resourceapi.DeviceRequestAllocationResult) bool {
					return structured.MakeDeviceID(r.Driver, r.Pool, r.Device) == device
				})
				found[uid] = holder{e.Claim, stored || found[uid].stored}
			}
		}
	}
	return sorted(found)
}

// lookAgain reads the claims and slices that caused the obstacle. It reports whether the caller should try the write again.
func (j *judgement) lookAgain(ctx context.Context, o *obstacle) (again bool, err error) {
	if o.driver != "" && !j.published[o.driver] {
		published, err := j.guard.live.Slices(ctx, o.driver)
		if err != nil {
			return false, err
		}
		j.published[o.driver], again = true, true
		for _, slice := range published {
			allocator.LimitQuantities(slice)
		}
		j.publish(o.driver, published)
	}
	for _, h := range o.inTheWay {
		if j.asked.Has(h.UID) || len(j.asked) == maxReads {
			continue
		}
		j.asked.Insert(h.UID)
		news, err := j.guard.read(ctx, h.Claim)
		if err != nil {
			return false, err
		}
		again = again || news
	}
	return again, nil
}

// publish builds the driver's pools from slices that were just read, and stores the pools that the write uses in live.
func (j *judgement) publish(driver string, published []*resourceapi.ResourceSlice) {
	for _, id := range poolsOf(j.write.Results) {
		if id.driver == driver {
			of := slices.DeleteFunc(slices.Clone(published), func(slice *resourceapi.ResourceSlice) bool { return poolOf(slice) != id })
			j.live[id] = allocator.NewPublishedPool(id.driver, id.name, of)
		}
	}
}
