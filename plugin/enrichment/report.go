// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/deviceattributes"
	"github.com/celset/celset/plugin/metrics"
)

const (
	// statusSettles is the time from the first report about an object to the first write of its status. When the scheduler starts,
	// its lists may still grow.
	statusSettles = 500 * time.Millisecond
	// statusRest is the minimum time between two writes of the status of an object. A driver that restarts changes the numbers of
	// its devices several times.
	statusRest = 5 * time.Second
	// statusRetry is the time until a write that failed is repeated, or until the scheduler may have become the leader.
	statusRetry = 2 * time.Second
	// statusTimeout limits the time of one write.
	statusTimeout = 10 * time.Second
	// maxNote is the API server's limit in bytes for the text of an event.
	maxNote = 1 << 10
)

// reporter writes the status of the objects if it has changed and the scheduler leads. After the first status of a generation of
// an object, it records an event. All writes come from one goroutine.
type reporter struct {
	config   *Config
	follower *follower
	// wake has an element if a status may have to be written.
	wake chan struct{}

	// mutex guards found.
	mutex sync.Mutex
	// found has the results of the latest pass.
	found map[types.UID]finding

	// The goroutine of run alone uses the fields below. due maps an object to the earliest time of its next write. failed is the
	// last error that was logged.
	due    map[types.UID]time.Time
	failed string
}

// finding is the result of a pass for one object.
type finding struct {
	name       string
	generation int64
	report     deviceattributes.ObjectReport
}

func newReporter(config *Config, follower *follower) *reporter {
	return &reporter{config: config, follower: follower, wake: make(chan struct{}, 1), due: map[types.UID]time.Time{}}
}

// set replaces the results, and shows their sums as metrics. A nil report means that there are no objects.
func (r *reporter) set(report *deviceattributes.Report) {
	found := map[types.UID]finding{}
	sums := metrics.Attributes{}
	if report != nil {
		for i := range report.Objects {
			of := &report.Objects[i]
			found[of.Object.UID] = finding{of.Object.Name, of.Object.Generation, *of}
			add(&sums, of)
		}
	}
	r.config.Metrics.ShowAttributes(sums)
	r.mutex.Lock()
	r.found = found
	r.mutex.Unlock()
	r.request()
}

// request makes run compare the results with the status of the objects.
func (r *reporter) request() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func add(sums *metrics.Attributes, of *deviceattributes.ObjectReport) {
	if of.Rejection == nil {
		sums.Accepted++
	} else {
		sums.Rejected++
	}
	sums.Set += of.Attributes
	sums.UnmatchedRows += of.UnmatchedRows.Count
	sums.FailedExpressions += of.FailedExpressions.Count
	sums.Conflicts += of.Conflicts.Count
}

// run writes the status of objects until ctx is done.
func (r *reporter) run(ctx context.Context) {
	for {
		wait := r.writeDue(ctx)
		timer := r.config.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// writeDue writes each status that differs from the result and is due. It returns the time until the next write.
func (r *reporter) writeDue(ctx context.Context) (wait time.Duration) {
	wait = time.Hour
	for uid, found := range r.sorted() {
		object := r.follower.get(found.name, uid)
		if object == nil || object.Generation != found.generation {
			continue
		}
		// The status of the object may have changed since the pass.
		found.report.Object = object
		status := found.report.Status(metav1.NewTime(r.config.Clock.Now().Truncate(time.Second)))
		if equality.Semantic.DeepEqual(object.Status, status) {
			continue
		}
		if _, isKnown := r.due[uid]; !isKnown {
			r.due[uid] = r.config.Clock.Now().Add(statusSettles)
		}
		if left := r.due[uid].Sub(r.config.Clock.Now()); left > 0 {
			wait = min(wait, left)
			continue
		}
		rest := statusRest
		if r.config.Leads() != nil || !r.write(ctx, object, &status) {
			rest = statusRetry
		}
		r.due[uid] = r.config.Clock.Now().Add(rest)
		wait = min(wait, rest)
	}
	return wait
}

// sorted returns the results in the order of names. It also forgets deleted objects.
func (r *reporter) sorted() func(yield func(types.UID, finding) bool) {
	r.mutex.Lock()
	found := r.found
	r.mutex.Unlock()
	uids := make([]types.UID, 0, len(found))
	for uid := range found {
		uids = append(uids, uid)
	}
	slices.SortFunc(uids, func(a, b types.UID) int { return cmp.Compare(found[a].name, found[b].name) })
	for uid := range r.due {
		if _, ok := found[uid]; !ok {
			delete(r.due, uid)
		}
	}
	return func(yield func(types.UID, finding) bool) {
		for _, uid := range uids {
			if !yield(uid, found[uid]) {
				return
			}
		}
	}
}

// write writes a status and returns false if the write must be repeated. The resource version of the object makes the API server
// reject a status for another generation.
func (r *reporter) write(ctx context.Context, object *v1alpha1.DeviceAttributes, status *v1alpha1.DeviceAttributesStatus) bool {
	next := object.DeepCopy()
	next.Status = *status
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		r.log(ctx, object, err)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	written, err := r.config.Client.Resource(Resource).UpdateStatus(ctx, &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true
	case apierrors.IsConflict(err):
		// The watch delivers the current version.
		return false
	case err != nil:
		r.log(ctx, object, err)
		return false
	}
	r.failed = ""
	r.follower.refresh(ctx, written)
	if object.Status.ObservedGeneration != status.ObservedGeneration {
		r.record(next)
	}
	return true
}

// log logs an error once.
func (r *reporter) log(ctx context.Context, object *v1alpha1.DeviceAttributes, err error) {
	if text := err.Error(); r.failed != text && ctx.Err() == nil {
		r.failed = text
		klog.FromContext(ctx).Error(err, "Could not write the status of a DeviceAttributes object", "deviceAttributes", klog.KObj(object))
	}
}

// record records an event with the first status of a generation of the object.
func (r *reporter) record(object *v1alpha1.DeviceAttributes) {
	recorder := r.config.Recorder()
	if recorder == nil {
		return
	}
	kind, reason, note := eventOf(&object.Status)
	recorder.Eventf(object, nil, kind, reason, wellknown.ActionReading, "%s", strings.ToValidUTF8(note[:min(len(note), maxNote)], ""))
}

// eventOf returns the type, the reason and the note of the event for a status.
func eventOf(status *v1alpha1.DeviceAttributesStatus) (kind, reason, note string) {
	message := func(condition string) string {
		if c := meta.FindStatusCondition(status.Conditions, condition); c != nil {
			return c.Message
		}
		return ""
	}
	switch {
	case !meta.IsStatusConditionTrue(status.Conditions, wellknown.ConditionAttributesAccepted):
		return v1.EventTypeWarning, wellknown.ReasonAttributesRejected, message(wellknown.ConditionAttributesAccepted)
	case meta.IsStatusConditionTrue(status.Conditions, wellknown.ConditionAttributesConflicted):
		return v1.EventTypeWarning, wellknown.ReasonAttributesIncomplete, message(wellknown.ConditionAttributesConflicted)
	case !meta.IsStatusConditionTrue(status.Conditions, wellknown.ConditionAttributesComplete):
		return v1.EventTypeWarning, wellknown.ReasonAttributesIncomplete, message(wellknown.ConditionAttributesComplete)
	}
	return v1.EventTypeNormal, wellknown.ReasonAttributesAdded, message(wellknown.ConditionAttributesComplete)
}
