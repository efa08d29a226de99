// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/celset/celset/apis/wellknown"
)

const (
	// writeTimeout is the timeout of one request.
	writeTimeout = 10 * time.Second
	// maxWrites is the maximum number of requests for one condition.
	maxWrites = 8
	// firstRewrite is the delay before the first repetition of a failed request. Each further delay is twice as long.
	firstRewrite = time.Second
)

// Store writes conditions of pods. [Store.Write] writes at once. [Store.WriteLater] leaves the write to [Store.Run]. If several
// conditions of one pod wait, only the latest is written. Requests for one pod never overlap.
type Store struct {
	client kubernetes.Interface
	clock  clock.WithTicker
	// wake has an element if Run must look for due writes.
	wake chan struct{}

	// mutex guards the following fields.
	mutex sync.Mutex
	later map[types.UID]*laterWrite
	// busy has a channel for each pod with a request in progress. The channel is closed at the end of the request.
	busy map[types.UID]chan struct{}
}

type laterWrite struct {
	pod       *v1.Pod
	condition *v1.PodCondition
	failed    func(error)
	// asked is the time of the call of WriteLater. due is the earliest time of the next request.
	asked, due time.Time
	writes     int
}

// ErrEnded is the error of [Store.Write] if the hold has already ended, so that it must not be recorded.
var ErrEnded = errors.New("the hold has ended")

// NewStore returns a Store without waiting writes. clock times the repetition of failed requests.
func NewStore(client kubernetes.Interface, clock clock.WithTicker) *Store {
	return &Store{client: client, clock: clock, wake: make(chan struct{}, 1), later: map[types.UID]*laterWrite{}, busy: map[types.UID]chan struct{}{}}
}

// Write writes the condition that records a hold. begun is the start of the hold. Write returns [ErrEnded] if the hold has
// ended since. It returns an error if the pod was deleted or replaced by another pod of the same name.
func (s *Store) Write(ctx context.Context, pod *v1.Pod, condition *v1.PodCondition, begun time.Time) error {
	end, err := s.begin(ctx, pod.UID)
	if err != nil {
		return err
	}
	defer end()
	s.mutex.Lock()
	later := s.later[pod.UID]
	hasEnded := later != nil && later.condition.Status == v1.ConditionFalse && !later.asked.Before(begun)
	if !hasEnded {
		delete(s.later, pod.UID)
	}
	s.mutex.Unlock()
	if hasEnded {
		return fmt.Errorf("write condition %s of pod %s: %w", condition.Type, klog.KObj(pod), ErrEnded)
	}
	return s.patch(ctx, pod, condition)
}

// WriteLater stores a condition that Run writes. failed is called if the write finally fails. It may be nil.
func (s *Store) WriteLater(pod *v1.Pod, condition *v1.PodCondition, failed func(error)) {
	s.mutex.Lock()
	now := s.clock.Now()
	s.later[pod.UID] = &laterWrite{pod: pod, condition: condition, failed: failed, asked: now, due: now}
	s.mutex.Unlock()
	s.wakeUp()
}

func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run writes the conditions stored by WriteLater until ctx is done.
func (s *Store) Run(ctx context.Context) {
	for ctx.Err() == nil {
		write, wait := s.next()
		if write != nil {
			s.write(ctx, write)
			continue
		}
		timer := s.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// idle is the maximum time that Run sleeps.
const idle = time.Hour

// next returns a due write. If no write is due, it returns nil and the time until the next write is due.
func (s *Store) next() (due *laterWrite, wait time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	wait = idle
	for _, write := range s.later {
		left := write.due.Sub(s.clock.Now())
		if left <= 0 {
			return write, 0
		}
		wait = min(wait, left)
	}
	return nil, wait
}

func (s *Store) write(ctx context.Context, write *laterWrite) {
	end, err := s.begin(ctx, write.pod.UID)
	if err != nil {
		return
	}
	defer end()
	if !s.isLatest(write) {
		return
	}
	err = s.patch(ctx, write.pod, write.condition)
	s.mutex.Lock()
	isLatest := s.later[write.pod.UID] == write
	write.writes++
	isLast := err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) || write.writes >= maxWrites
	if isLatest && isLast {
		delete(s.later, write.pod.UID)
	}
	write.due = s.clock.Now().Add(firstRewrite << write.writes)
	s.mutex.Unlock()
	if err == nil || !isLast || !isLatest || ctx.Err() != nil {
		return
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Error(err, "The condition of a pod could not be written", "pod", klog.KObj(write.pod), "condition", wellknown.ConditionDevicesHeld)
	}
	if write.failed != nil {
		write.failed(err)
	}
}

func (s *Store) isLatest(write *laterWrite) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.later[write.pod.UID] == write
}

// begin waits until no other request for the pod is in progress, and then marks the pod as busy. end removes the mark.
func (s *Store) begin(ctx context.Context, pod types.UID) (end func(), err error) {
	for {
		s.mutex.Lock()
		other, busy := s.busy[pod]
		if !busy {
			done := make(chan struct{})
			s.busy[pod] = done
			s.mutex.Unlock()
			return func() {
				s.mutex.Lock()
				delete(s.busy, pod)
				s.mutex.Unlock()
				close(done)
			}, nil
		}
		s.mutex.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// patch writes one condition of a pod and keeps the others. The patch contains the pod's UID, so the API server rejects it for
// another pod of the same name.
func (s *Store) patch(ctx context.Context, pod *v1.Pod, condition *v1.PodCondition) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []v1.PodCondition{*condition}},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if _, err := s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write condition %s of pod %s: %w", condition.Type, klog.KObj(pod), err)
	}
	return nil
}
