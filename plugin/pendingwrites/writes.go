// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// maxUnconfirmed is the maximum number of pending allocations of one claim. At the limit, the claim is not written until one
	// of them is settled.
	maxUnconfirmed = 64
	// maxWaiting is the maximum number of pods that wait for pending writes of one claim, to be activated when a write ends.
	// Other pods are retried after another event or after some minutes.
	maxWaiting = 1024
	// deviceIndex is the name of the index of claims by their devices.
	deviceIndex = "celset.dev/device"
)

// Config configures [Writes].
type Config struct {
	// Client is the scheduler's client. KubeConfig is the configuration of the client, nil in tests.
	Client     kubernetes.Interface
	KubeConfig *rest.Config
	// Leads returns an error if another scheduler process may be the leader.
	Leads func() error
	// Delivered is the store of the informer: the claims as the watch delivered them. New adds an index to it.
	Delivered cache.Indexer
	// Tracker is the scheduler's list of claims. It also has claims that the scheduler assumed after a write.
	Tracker Tracker
	Clock   clock.PassiveClock
	// Settled is called with the outcome of each write whose response was lost.
	Settled func(Outcome)
}

// Tracker holds the methods of the scheduler's list of claims that Writes calls.
type Tracker interface {
	Get(namespace, name string) (*resourceapi.ResourceClaim, error)
	// AssumeClaimAfterAPICall puts a claim into the list. It returns an error if the list does not contain the claim yet, or if it
	// has a later version.
	AssumeClaimAfterAPICall(claim *resourceapi.ResourceClaim) error
}

// Writes holds the pending writes of all profiles of one scheduler. It is safe for concurrent use.
type Writes struct {
	config Config
	queue  workqueue.TypedRateLimitingInterface[types.UID]
	turns  claimTurns

	// mutex guards the following fields.
	mutex  sync.Mutex
	claims map[types.UID]*pendingClaim
	// contested has the devices that made Check return an error. They count as in use until no claim has them.
	contested map[string]resourceapi.DeviceRequestAllocationResult
	// caughtUp is true after CatchUp has succeeded.
	caughtUp bool
	// lastNumber is the number of the latest write. ends counts the writes that were pending and have ended.
	lastNumber, ends uint64
}

// pendingClaim is a claim with pending writes.
type pendingClaim struct {
	namespace, name string
	writes          []write
	// retries maps the UID of each pod that waits for these writes to a function that activates the pod.
	retries map[types.UID]func()
}

// write is the write of one allocation that the watch has not delivered yet.
type write struct {
	number uint64
	// stored is true if the API server has confirmed the write.
	stored bool
	// version is the version of the claim after a stored write. For an unconfirmed write, it is the version that was sent. If the
	// claim has another version by then, the API server rejects the write.
	version string
	devices []resourceapi.DeviceRequestAllocationResult
	at      time.Time
}

// New returns Writes without pending writes, and adds an index to config.Delivered.
func New(config Config) (*Writes, error) {
	if err := config.Delivered.AddIndexers(cache.Indexers{deviceIndex: exclusiveDevices}); err != nil {
		return nil, fmt.Errorf("look up ResourceClaims by their devices: %w", err)
	}
	var err error
	if config.Client, err = leaderClient(&config); err != nil {
		return nil, fmt.Errorf("create the client for allocations: %w", err)
	}
	return &Writes{
		config: config,
		claims: map[types.UID]*pendingClaim{}, contested: map[string]resourceapi.DeviceRequestAllocationResult{},
		turns: claimTurns{byClaim: map[types.UID]*turn{}},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstRetry, lastRetry)),
	}, nil
}

// Ends returns the number of writes that are no longer pending. A caller that reads upstream's list of devices in use before
// the pending writes may miss a write that was settled in between. In that case the result of Ends has changed.
func (w *Writes) Ends() uint64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.ends
}

// InUse returns the devices that the pod must not get, because other claims may have them. own is the UID of the pod's only
// unallocated claim, or "". Pending writes of own don't count, because the API server stores at most one of several writes for
// the same version of a claim. When a write ends, activate is called with pod.
func (w *Writes) InUse(pod *v1.Pod, own types.UID, activate func(*v1.Pod)) []resourceapi.DeviceRequestAllocationResult {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var devices []resourceapi.DeviceRequestAllocationResult
	for key, device := range w.contested {
		if w.owner(key, "") == "" {
			delete(w.contested, key)
		} else if w.owner(key, own) != "" {
			devices = append(devices, device)
		}
	}
	for uid, claim := range w.claims {
		if uid == own || w.forgetDelivered(uid, claim) {
			continue
		}
		for _, write := range claim.writes {
			devices = append(devices, write.devices...)
		}
		if len(claim.retries) < maxWaiting {
			claim.retries[pod.UID] = func() { activate(pod) }
		}
	}
	return devices
}

// Check returns an error if another claim has a device that claim is about to get. From then on the device counts as in use
// until no claim has it.
func (w *Writes) Check(claim *resourceapi.ResourceClaim) error {
	if claim.Status.Allocation == nil {
		return nil
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, result := range claim.Status.Allocation.Devices.Results {
		key := exclusiveDevice(&result)
		if key == "" {
			continue
		}
		if owner := w.owner(key, claim.UID); owner != "" {
			w.contested[key] = result
			return fmt.Errorf("device %s was chosen for claim %s, but claim %s has it: the scheduler tries again with other devices", key, klog.KObj(claim), owner)
		}
	}
	return nil
}

// owner returns the name of a claim that has the device key, or "". It ignores the claim with the UID ignored. The caller must
// have locked the mutex.
func (w *Writes) owner(key string, ignored types.UID) string {
	// The lookup fails only without the index, which New has added.
	told, _ := w.config.Delivered.ByIndex(deviceIndex, key)
	for _, object := range told {
		if claim, is := object.(*resourceapi.ResourceClaim); is && claim.UID != ignored {
			return klog.KObj(claim).String()
		}
	}
	for uid, claim := range w.claims {
		if uid == ignored || w.forgetDelivered(uid, claim) {
			continue
		}
		for _, write := range claim.writes {
			if write.stored && slices.ContainsFunc(write.devices, func(device resourceapi.DeviceRequestAllocationResult) bool { return exclusiveDevice(&device) == key }) {
				return klog.KRef(claim.namespace, claim.name).String()
			}
		}
	}
	return ""
}

// exclusiveDevices is the index function of claims. It returns the keys of the devices that the claim does not share.
func exclusiveDevices(object any) (keys []string, err error) {
	claim, is := object.(*resourceapi.ResourceClaim)
	if !is || claim.Status.Allocation == nil {
		return nil, nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if key := exclusiveDevice(&result); key != "" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// exclusiveDevice returns the key "driver/pool/device". It returns "" if other claims may have the device, too.
func exclusiveDevice(result *resourceapi.DeviceRequestAllocationResult) string {
	if ptr.Deref(result.AdminAccess, false) || result.ShareID != nil {
		return ""
	}
	return result.Driver + "/" + result.Pool + "/" + result.Device
}

// add makes the allocation of a claim a pending write. Upstream's list of devices in use is not sufficient (see the package
// comment). Responses may arrive out of order. So add ignores a confirmed write if a later confirmed write is pending.
func (w *Writes) add(claim *resourceapi.ResourceClaim, isStored bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	pending := w.claims[claim.UID]
	if pending == nil {
		pending = &pendingClaim{namespace: claim.Namespace, name: claim.Name, retries: map[types.UID]func(){}}
		w.claims[claim.UID] = pending
	}
	added := write{stored: isStored, version: claim.ResourceVersion, devices: claim.Status.Allocation.Devices.Results, at: w.config.Clock.Now()}
	at := slices.IndexFunc(pending.writes, added.replaces)
	if at >= 0 && isStored && isOlder(added.version, pending.writes[at].version) {
		return
	}
	w.lastNumber++
	added.number = w.lastNumber
	if at >= 0 {
		pending.writes[at] = added
	} else {
		pending.writes = append(pending.writes, added)
	}
	if isStored {
		w.queue.AddAfter(claim.UID, untilAsked)
	} else {
		w.queue.Add(claim.UID)
	}
}

// replaces reports whether write a replaces the pending write b. A claim has one stored version, so a stored write replaces
// another stored write. An unconfirmed write replaces an equal unconfirmed write.
func (a write) replaces(b write) bool {
	if a.stored || b.stored {
		return a.stored == b.stored
	}
	return a.version == b.version && reflect.DeepEqual(a.devices, b.devices)
}

// checkLimit returns the number of the latest write. It returns an error if the claim has maxUnconfirmed pending writes.
func (w *Writes) checkLimit(claim *resourceapi.ResourceClaim) (begun uint64, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if pending := w.claims[claim.UID]; pending != nil && len(pending.writes) >= maxUnconfirmed {
		err = fmt.Errorf("the API server has not answered %d earlier writes of claim %s: the scheduler writes the allocation again after the answers", maxUnconfirmed, klog.KObj(claim))
	}
	return w.lastNumber, err
}

// forgetDelivered removes stored writes of a claim that the watch has delivered. none reports whether the claim has no pending
// writes left. The caller must have locked the mutex.
func (w *Writes) forgetDelivered(uid types.UID, claim *pendingClaim) (none bool) {
	claim.writes = slices.DeleteFunc(claim.writes, func(write write) bool {
		told := write.stored && w.isDelivered(uid, claim.namespace, claim.name, write.version)
		if told {
			w.ends++
		}
		return told
	})
	return w.forgetSettled(uid, claim)
}

func (w *Writes) forgetSettled(uid types.UID, claim *pendingClaim) (none bool) {
	if none = len(claim.writes) == 0; none {
		delete(w.claims, uid)
	}
	return none
}

// isDelivered reports whether the watch has delivered the given version of a claim or a later version.
func (w *Writes) isDelivered(uid types.UID, namespace, name, version string) bool {
	object, _, _ := w.config.Delivered.GetByKey(cache.NewObjectName(namespace, name).String())
	claim, is := object.(*resourceapi.ResourceClaim)
	return is && claim.UID == uid && !isOlder(claim.ResourceVersion, version)
}

// isOlder reports whether version precedes than.
func isOlder(version, than string) bool {
	if version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}
