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
	// maxUnconfirmed limits the pending allocations of one claim. At the limit, nothing more is written until one is settled.
	maxUnconfirmed = 64
	// maxWaiting limits the refused pods that a claim stores, to activate them when its writes end. Other refused pods are tried
	// again after another event or after some minutes.
	maxWaiting = 1024
	// deviceIndex is the name of the index of claims by their devices.
	deviceIndex = "celset.dev/device"
)

// Config configures [Writes].
type Config struct {
	// Client is the scheduler's client, KubeConfig its configuration; nil in tests.
	Client     kubernetes.Interface
	KubeConfig *rest.Config
	// Leads returns an error while another scheduler may lead.
	Leads func() error
	// Delivered is the store of the informer of claims: the claims as the watch delivered them. New adds an index.
	Delivered cache.Indexer
	// Tracker is the scheduler's list of claims.
	Tracker Tracker
	Clock   clock.PassiveClock
	// Settled is called with the outcome of each write whose answer was lost.
	Settled func(Outcome)
}

// Tracker is a subset of the scheduler's list of claims.
type Tracker interface {
	Get(namespace, name string) (*resourceapi.ResourceClaim, error)
	// AssumeClaimAfterAPICall returns an error if the list does not have the claim yet or has a later version.
	AssumeClaimAfterAPICall(claim *resourceapi.ResourceClaim) error
}

// Writes holds the pending writes of one scheduler with all its profiles. It is safe for concurrent use.
type Writes struct {
	config Config
	queue  workqueue.TypedRateLimitingInterface[types.UID]
	turns  claimTurns

	// mutex guards the following fields.
	mutex  sync.Mutex
	claims map[types.UID]*pendingClaim
	// contested are devices that Check has refused. They stay in use until no claim has them.
	contested map[string]resourceapi.DeviceRequestAllocationResult
	// caughtUp is true after CatchUp has succeeded.
	caughtUp bool
	// lastNumber is the number of the latest write. ends counts writes that are no longer pending.
	lastNumber, ends uint64
}

// pendingClaim is a claim with pending writes.
type pendingClaim struct {
	namespace, name string
	writes          []write
	// retries maps pods that the writes may have refused to functions that activate them.
	retries map[types.UID]func()
}

// write is one allocation that the watch has not delivered.
type write struct {
	number uint64
	// stored is true if the API server has confirmed the write.
	stored bool
	// version is the version of the claim after a stored write. For an unconfirmed write, it is the version that was sent: the API
	// server rejects the write once the claim has another version.
	version string
	devices []resourceapi.DeviceRequestAllocationResult
	at      time.Time
}

// New returns Writes without pending writes.
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

// Ends counts writes that are no longer pending. A caller that lists allocations and then pending writes may miss a write that
// was settled in between. In that case the result of Ends has changed.
func (w *Writes) Ends() uint64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.ends
}

// InUse returns the devices that no claim other than own may get; own may be "". Pending devices of own are left out: at most
// one of two writes for the same version of a claim is stored. When a write ends, activate is called with the pod.
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

// Check returns an error if another claim has one of the devices that the claim is about to get. From then on no claim gets the
// device until it is free.
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

// owner returns the name of a claim that has a device, or "". It skips the claim with the UID ignored. The mutex must be locked.
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

// exclusiveDevices is the index function. It returns the devices that a claim doesn't share.
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

// exclusiveDevice returns "driver/pool/device", or "" if other claims may have the device, too.
func exclusiveDevice(result *resourceapi.DeviceRequestAllocationResult) string {
	if ptr.Deref(result.AdminAccess, false) || result.ShareID != nil {
		return ""
	}
	return result.Driver + "/" + result.Pool + "/" + result.Device
}

// add counts the devices of a claim as in use. The scheduler's list is not sufficient, see the package comment. Answers may
// arrive out of order, so add ignores a stored version that is older than the known one.
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

// replaces reports whether a replaces b. A claim has one stored version, so a stored write replaces the one before it. A
// request that was not confirmed replaces an equal request.
func (a write) replaces(b write) bool {
	if a.stored || b.stored {
		return a.stored == b.stored
	}
	return a.version == b.version && reflect.DeepEqual(a.devices, b.devices)
}

// checkLimit returns the number of the latest write, or an error if a claim has too many pending writes.
func (w *Writes) checkLimit(claim *resourceapi.ResourceClaim) (begun uint64, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if pending := w.claims[claim.UID]; pending != nil && len(pending.writes) >= maxUnconfirmed {
		err = fmt.Errorf("the API server has not answered %d earlier writes of claim %s: the scheduler writes the allocation again after the answers", maxUnconfirmed, klog.KObj(claim))
	}
	return w.lastNumber, err
}

// forgetDelivered removes stored writes that the watch has delivered, and reports whether nothing is pending. The mutex must be
// locked.
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

// isDelivered reports whether the watch has delivered this version of a claim or a later one.
func (w *Writes) isDelivered(uid types.UID, namespace, name, version string) bool {
	object, _, _ := w.config.Delivered.GetByKey(cache.NewObjectName(namespace, name).String())
	claim, is := object.(*resourceapi.ResourceClaim)
	return is && claim.UID == uid && !isOlder(claim.ResourceVersion, version)
}

// isOlder reports whether one version of a claim precedes another version.
func isOlder(version, than string) bool {
	if version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}
