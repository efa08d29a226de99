// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"strings"
	"sync"
	"time"

	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/util"
	"k8s.io/utils/lru"
)

// A scheduling cycle must not wait for the API server, so conditions of groups are written in the background.
//
//  1. report stores the wanted condition. A newer one replaces it, so that writes of a condition can't overtake each other.
//  2. A change of the status is due at once. A change of the message is due refreshInterval after the last change, because a
//     message may change with each attempt.
//  3. flush writes the condition. It tries again after an error.
//
// The number of wanted conditions, of concurrent requests and of remembered conditions is limited.

const (
	// conditionTimeout is the timeout of a request that writes a condition.
	conditionTimeout = 10 * time.Second
	// maxConditionWrites is the maximum number of conditions that are written at the same time, and maxWanted the maximum number
	// that wait to be written.
	maxConditionWrites = 16
	maxWanted          = 1024
	// maxConditionTries is the number of requests for a condition, and conditionRetry the delay after the first one.
	maxConditionTries = 5
	conditionRetry    = time.Second
	// refreshInterval is the minimum time between two messages of a condition with the same status.
	refreshInterval = 10 * time.Second
	// maxConditionMessage and maxNote are the API server's limits, in bytes, for the texts of conditions and events.
	maxConditionMessage = 32 << 10
	maxNote             = 1 << 10
)

// conditions writes conditions of PodGroups.
type conditions struct {
	client kubernetes.Interface
	queue  workqueue.TypedDelayingInterface[conditionKey]
	mutex  sync.Mutex
	wanted map[conditionKey]*wantedCondition
	// last maps a conditionKey to the *reportedCondition that was reported last.
	last *lru.Cache
}

// conditionKey identifies a condition of a group.
type conditionKey struct {
	group types.UID
	name  string
}

// wantedCondition is a condition that waits to be written. before is the status of the group without the condition.
type wantedCondition struct {
	namespace, name string
	before, after   *schedulingapi.PodGroupStatus
	tries           int
}

// reportedCondition is a condition that was reported. at is the time of the last report, and due the time at which the condition
// is or was to be written.
type reportedCondition struct {
	status  metav1.ConditionStatus
	text    string
	at, due time.Time
}

// newConditions returns conditions that write nothing until they are started.
func newConditions(client kubernetes.Interface) *conditions {
	return &conditions{
		client: client, queue: workqueue.NewTypedDelayingQueue[conditionKey](), wanted: map[conditionKey]*wantedCondition{}, last: lru.New(maxWanted),
	}
}

// start starts goroutines that write conditions until ctx is done.
func (c *conditions) start(ctx context.Context) {
	context.AfterFunc(ctx, c.queue.ShutDown)
	for range maxConditionWrites {
		go c.run(ctx)
	}
}

// report makes a condition of a group be written. It returns false if the group already has the condition, or if too many
// conditions wait.
func (c *conditions) report(group *schedulingapi.PodGroup, condition metav1.Condition) bool {
	condition.Message, condition.ObservedGeneration = cut(condition.Message, maxConditionMessage), group.Generation
	key, text, now := conditionKey{group.UID, condition.Type}, condition.Reason+" "+condition.Message, time.Now()
	after := group.Status.DeepCopy()
	differs := meta.SetStatusCondition(&after.Conditions, condition)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	last, isKnown := c.lastOf(key)
	reported := &reportedCondition{status: condition.Status, text: text, at: now, due: now}
	if isKnown && last.status == condition.Status {
		switch next := last.due.Add(refreshInterval); {
		case c.wanted[key] != nil:
			reported.due = last.due
		case now.Before(next):
			reported.due = next
		}
		if last.text == text && (!differs || now.Before(last.due.Add(refreshInterval))) {
			last.at = now
			return false
		}
	}
	if !isKnown && !differs {
		c.last.Add(key, reported)
		return false
	}
	if c.wanted[key] == nil && len(c.wanted) == maxWanted {
		return false
	}
	before := group.Status.DeepCopy()
	meta.RemoveStatusCondition(&before.Conditions, condition.Type)
	c.wanted[key] = &wantedCondition{namespace: group.Namespace, name: group.Name, before: before, after: after}
	c.last.Add(key, reported)
	c.queue.AddAfter(key, reported.due.Sub(now))
	return true
}

// isSoonAfter reports whether the condition was reported with this status less than gap before the time begin.
func (c *conditions) isSoonAfter(group *schedulingapi.PodGroup, name string, status metav1.ConditionStatus, begin time.Time, gap time.Duration) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	last, ok := c.lastOf(conditionKey{group.UID, name})
	return ok && last.status == status && begin.Sub(last.at) < gap
}

// isFalse reports whether a condition is False, or will be when it is written.
func (c *conditions) isFalse(group *schedulingapi.PodGroup, name string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if last, ok := c.lastOf(conditionKey{group.UID, name}); ok {
		return last.status == metav1.ConditionFalse
	}
	return meta.IsStatusConditionFalse(group.Status.Conditions, name)
}

func (c *conditions) lastOf(key conditionKey) (*reportedCondition, bool) {
	last, ok := c.last.Get(key)
	if !ok {
		return nil, false
	}
	return last.(*reportedCondition), true
}

func (c *conditions) run(ctx context.Context) {
	for {
		key, ended := c.queue.Get()
		if ended {
			return
		}
		c.flush(ctx, key)
		c.queue.Done(key)
	}
}

// flush writes a condition if it is wanted.
func (c *conditions) flush(ctx context.Context, key conditionKey) {
	c.mutex.Lock()
	w := c.wanted[key]
	delete(c.wanted, key)
	c.mutex.Unlock()
	if w == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, conditionTimeout)
	defer cancel()
	err := util.PatchPodGroupStatus(limited, c.client, w.name, w.namespace, w.before, w.after)
	if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
		return
	}
	klog.FromContext(ctx).Error(err, "The condition of a PodGroup could not be written", "podGroup", klog.KRef(w.namespace, w.name), "condition", key.name)
	if w.tries++; w.tries == maxConditionTries {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.wanted[key] == nil && len(c.wanted) < maxWanted {
		c.wanted[key] = w
		c.queue.AddAfter(key, conditionRetry<<(w.tries-1))
	}
}

// cut shortens a text to at most most bytes.
func cut(text string, most int) string {
	const ellipsis = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
