// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/wellknown"
)

// A hold is recorded in a condition of its pod. Tenants can't write the status of pods, the condition is deleted with the pod,
// and kube-scheduler's role may write it. The condition's message is JSON for schedulers. The owner of the pod can read the
// message, so it has no names of other pods or their claims.

const (
	// recordVersion is the version of the message's format. Restore ignores messages of other versions.
	recordVersion = 1
	// maxRecord is the maximum size of a condition's message in bytes.
	maxRecord = 64 << 10
)

// reasons maps the end of a hold to the reason of the condition, whose status is then False.
var reasons = map[End]string{
	Bound: wellknown.ReasonBound, Moved: wellknown.ReasonBoundElsewhere, Deleted: wellknown.ReasonPodDeleted,
	ClaimDeleted: wellknown.ReasonClaimDeleted, TimedOut: wellknown.ReasonTimedOut, Broken: wellknown.ReasonOutranked,
	Lost: wellknown.ReasonDevicesLost, Unrecorded: wellknown.ReasonNotRecorded,
}

// record is the JSON message of the condition.
type record struct {
	Version int `json:"version"`
	// Try is the number of this hold among the holds of the pod, from 1.
	Try int `json:"try"`
	// Until is the deadline of the hold. If the condition is False, Until is the earliest time of the next try.
	Until time.Time `json:"until"`
	// Began is the start of the hold.
	Began   *time.Time      `json:"begun,omitempty"`
	Node    string          `json:"node,omitempty"`
	Claims  []recordedClaim `json:"claims,omitempty"`
	Victims []types.UID     `json:"victims,omitempty"`
	Joined  int             `json:"joined,omitempty"`
	Frees   []types.UID     `json:"frees,omitempty"`
}

type recordedClaim struct {
	UID     types.UID        `json:"uid,omitempty"`
	Name    string           `json:"name"`
	Devices []recordedDevice `json:"devices"`
}

type recordedDevice struct {
	Driver   string                                          `json:"driver"`
	Pool     string                                          `json:"pool"`
	Device   string                                          `json:"device"`
	Share    *types.UID                                      `json:"share,omitempty"`
	Admin    bool                                            `json:"admin,omitempty"`
	Consumed map[resourceapi.QualifiedName]resource.Quantity `json:"consumed,omitempty"`
}

// Condition returns the condition that records a hold. It returns an error if the hold is too large for a condition.
func (h *Hold) Condition(now time.Time) (*v1.PodCondition, error) {
	r := record{Version: recordVersion, Try: h.Try, Until: h.Until.UTC(), Began: ptr.To(h.Began.UTC()), Node: h.Node, Victims: h.Victims, Joined: h.Joined, Frees: h.Frees}
	for i := range h.Claims {
		claim := recordedClaim{UID: h.Claims[i].UID, Name: h.Claims[i].Name}
		for j := range h.Claims[i].Devices {
			result := &h.Claims[i].Devices[j]
			claim.Devices = append(claim.Devices, recordedDevice{
				Driver: result.Driver, Pool: result.Pool, Device: result.Device, Share: result.ShareID,
				Admin: ptr.Deref(result.AdminAccess, false), Consumed: result.ConsumedCapacity,
			})
		}
		r.Claims = append(r.Claims, claim)
	}
	message, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record the devices that are held for the pod: %w", err)
	}
	if len(message) > maxRecord {
		return nil, fmt.Errorf("the record of the devices held for the pod takes %d bytes in its condition %s, but at most %d are allowed: ask for fewer devices", len(message), wellknown.ConditionDevicesHeld, maxRecord)
	}
	return newCondition(v1.ConditionTrue, wellknown.ReasonPreemptionStarted, string(message), now), nil
}

// Condition returns the condition of a pod whose hold has ended. If another try may follow, the message has the number of
// tries.
func (e *Ended) Condition(now time.Time) *v1.PodCondition {
	var message []byte
	if !e.How.isFinal() {
		// Marshaling can't fail for a struct of numbers and times.
		message, _ = json.Marshal(record{Version: recordVersion, Try: e.Try, Until: e.Next.UTC()})
	}
	return newCondition(v1.ConditionFalse, reasons[e.How], string(message), now)
}

func newCondition(status v1.ConditionStatus, reason, message string, now time.Time) *v1.PodCondition {
	return &v1.PodCondition{Type: wellknown.ConditionDevicesHeld, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)}
}

// ConditionOf returns the condition of a pod that records its hold, or nil.
func ConditionOf(pod *v1.Pod) *v1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == wellknown.ConditionDevicesHeld })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// read decodes the message of a condition. holds is false if the condition records the end of a hold.
func read(condition *v1.PodCondition) (r record, holds bool, err error) {
	holds = condition.Status == v1.ConditionTrue
	if len(condition.Message) > maxRecord {
		return r, holds, fmt.Errorf("the message has %d bytes, but the limit is %d", len(condition.Message), maxRecord)
	}
	if err := json.Unmarshal([]byte(condition.Message), &r); err != nil {
		return r, holds, err
	}
	switch {
	case r.Version != recordVersion:
		return r, holds, fmt.Errorf("version is %d, but only version %d is supported", r.Version, recordVersion)
	case r.Try < 0 || holds && r.Try == 0:
		return r, holds, fmt.Errorf("try is %d, it must be at least 1", r.Try)
	case holds && (r.Node == "" || len(r.Claims) == 0):
		return r, holds, errors.New("node or claims are missing")
	}
	return r, holds, nil
}

// hold returns the hold that the record describes.
func (r *record) hold(pod *v1.Pod) Hold {
	hold := Hold{Pod: pod, Node: r.Node, Victims: r.Victims, Joined: r.Joined, Frees: r.Frees, Began: ptr.Deref(r.Began, time.Time{}), Until: r.Until, Try: r.Try}
	for _, recorded := range r.Claims {
		claim := Claim{UID: recorded.UID, Name: recorded.Name}
		for _, d := range recorded.Devices {
			result := resourceapi.DeviceRequestAllocationResult{Driver: d.Driver, Pool: d.Pool, Device: d.Device, ShareID: d.Share, ConsumedCapacity: d.Consumed}
			if d.Admin {
				result.AdminAccess = ptr.To(true)
			}
			claim.Devices = append(claim.Devices, result)
		}
		hold.Claims = append(hold.Claims, claim)
	}
	return hold
}

// isChanged reports whether the record r has other devices than the stored foreign hold of the same try. mayBe is false if r
// can't be a continued foreign hold.
func (h *Holds) isChanged(pod *v1.Pod, r *record, mayBe bool) bool {
	known, ok := h.Of(pod.UID)
	return mayBe && ok && known.Foreign && known.Try == r.Try && !apiequality.Semantic.DeepEqual(known.Claims, r.hold(pod).Claims)
}

// Restore restores the hold that another process recorded in the condition of a pod. If that hold has ended, Restore restores
// the number of tries. It ignores pods that need no hold, and holds and tries that are stored already. foreign is true if
// another scheduler is responsible for the pod. The error describes an invalid condition.
func (h *Holds) Restore(pod *v1.Pod, foreign bool, retry func()) (restored bool, err error) {
	condition := ConditionOf(pod)
	if condition == nil || condition.Status == v1.ConditionFalse && (condition.Message == "" || foreign) {
		return false, nil
	}
	if _, over := IsOver(pod, ""); over {
		return false, nil
	}
	r, holds, err := read(condition)
	if err != nil {
		return false, err
	}
	if known, _ := h.Tries(pod.UID); known >= r.Try && known > 0 && !h.isChanged(pod, &r, holds && foreign) {
		return false, nil
	}
	if !holds {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		of := &tried{count: r.Try}
		h.tries[pod.UID] = of
		h.waitFor(of, r.Until, retry)
		return false, nil
	}
	hold := r.hold(pod)
	hold.Foreign, hold.Retry = foreign, retry
	if foreign {
		hold.Retry = nil
		if !hold.Until.After(h.clock.Now()) {
			return false, nil
		}
	}
	h.begin(hold, true)
	if !hold.Until.After(h.clock.Now()) {
		h.End(pod.UID, TimedOut)
	}
	return true, nil
}
