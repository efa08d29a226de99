// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// AttemptsAnnotation is where the journal is, in a Lease of the scheduler's namespace.
const AttemptsAnnotation = "celset.dev/attempts"

const (
	// putOffInitial is how long a pod is put off whose attempt did not end. It is doubled
	// each time, up to putOffMax.
	putOffInitial = 30 * time.Second
	putOffMax     = 5 * time.Minute
	// maxAttempts bounds the journal: the last ones stay.
	maxAttempts = 16
)

// Attempt is an attempt to schedule a pod that took long.
type Attempt struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Claims are the UIDs of the ResourceClaims that devices were looked for.
	Claims []types.UID `json:"claims,omitempty"`
	// Since is when it began.
	Since metav1.Time `json:"since"`
	// Ends counts how often the scheduler has ended during such an attempt, and Until is
	// how long the pod is put off. Both are zero while the attempt lasts.
	Ends  int         `json:"ends,omitempty"`
	Until metav1.Time `json:"until,omitzero"`
}

// keys are what is put off.
func (a *Attempt) keys() []types.UID { return append([]types.UID{a.UID}, a.Claims...) }

// sharesKey tells whether one is about a pod or claim of the other.
func (a *Attempt) sharesKey(other *Attempt) bool {
	for _, key := range a.keys() {
		for _, known := range other.keys() {
			if key == known {
				return true
			}
		}
	}
	return false
}

// Journal is what survives the end of the program.
type Journal struct {
	clock  clock.PassiveClock
	leases coordinationclient.LeaseInterface
	name   string
	claims func() []types.UID

	// mutex guards what is in the Lease besides the attempt that lasts.
	mutex  sync.Mutex
	putOff []Attempt
}

// NewJournal returns the journal in the Lease of that name. claims returns the claims of the
// pod that is being tried.
func NewJournal(clock clock.PassiveClock, leases coordinationclient.LeaseInterface, name string, claims func() []types.UID) *Journal {
	return &Journal{clock: clock, leases: leases, name: name, claims: claims}
}

// PutOff is a pod that was being tried when a scheduler ended.
type PutOff struct {
	Attempt
	// IsNew: it was the last that was tried.
	IsNew bool
}

// Keys are the pod and its claims.
func (p *PutOff) Keys() []types.UID { return p.keys() }

// Message says why it is put off.
func (p *PutOff) Message() string {
	return fmt.Sprintf("the scheduler ended while it tried pod %s/%s, which it did since %s: pods that are not known to do that are tried first",
		p.Namespace, p.Name, p.Since.UTC().Format(time.RFC3339))
}

// Read is called before anything is scheduled. It returns what is to be put off, also with an
// error if that could not be written down.
func (j *Journal) Read(ctx context.Context) ([]PutOff, error) {
	lease, err := j.leases.Get(ctx, j.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which pods were being tried: %w", err)
	}
	attempts, err := attemptsIn(lease)
	if err != nil {
		return nil, err
	}
	all, hasNew := j.judge(attempts)
	if !hasNew {
		return all, nil
	}
	// Else an attempt would count again each time that a scheduler starts.
	if err := j.write(ctx, nil, time.Time{}); err != nil {
		return all, fmt.Errorf("write which pods were being tried: %w", err)
	}
	return all, nil
}

// judge tells what is to be put off, and whether some of it was not before.
func (j *Journal) judge(attempts []Attempt) (all []PutOff, hasNew bool) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.putOff = nil
	now := j.clock.Now()
	for _, attempt := range attempts {
		isNew := attempt.Until.IsZero()
		if isNew {
			hasNew = true
			attempt.Ends++
			attempt.Until = metav1.Time{Time: now.Add(putOffFor(attempt.Ends))}
		}
		if attempt.Until.After(now) {
			all = append(all, PutOff{attempt, isNew})
		}
		// What was put off once is remembered for a while: it may end the next one too.
		if attempt.Until.Add(putOffMax).After(now) {
			j.putOff = append(j.putOff, attempt)
		}
	}
	return all, hasNew
}

func attemptsIn(lease *coordinationv1.Lease) ([]Attempt, error) {
	text := lease.Annotations[AttemptsAnnotation]
	if text == "" {
		return nil, nil
	}
	var attempts []Attempt
	if err := json.Unmarshal([]byte(text), &attempts); err != nil {
		return nil, fmt.Errorf("read which pods were being tried: annotation %s of Lease %s: %w", AttemptsAnnotation, klog.KObj(lease), err)
	}
	return attempts, nil
}

func putOffFor(ends int) time.Duration {
	duration := putOffInitial
	for range ends - 1 {
		if duration >= putOffMax/2 {
			return putOffMax
		}
		duration *= 2
	}
	return duration
}

// write has the journal say that the pod is being tried, or nobody if it is nil.
func (j *Journal) write(ctx context.Context, pod *v1.Pod, since time.Time) error {
	attempts := j.attempts(pod, since)
	text, err := json.Marshal(attempts)
	if err != nil {
		return err
	}
	lease, err := j.leases.Get(ctx, j.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: j.name, Annotations: map[string]string{AttemptsAnnotation: string(text)}}}
		_, err = j.leases.Create(ctx, lease, metav1.CreateOptions{})
		return err
	}
	if err != nil || lease.Annotations[AttemptsAnnotation] == string(text) {
		return err
	}
	lease = lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, AttemptsAnnotation, string(text))
	_, err = j.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// attempts are those that are to be in the journal.
func (j *Journal) attempts(pod *v1.Pod, since time.Time) []Attempt {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	now := j.clock.Now()
	var current *Attempt
	if pod != nil {
		current = &Attempt{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Claims: j.claims(), Since: metav1.Time{Time: since}}
	}
	attempts := []Attempt{}
	for _, attempt := range j.putOff {
		switch {
		case current != nil && attempt.sharesKey(current):
			current.Ends = max(current.Ends, attempt.Ends)
		case attempt.Until.Add(putOffMax).After(now):
			attempts = append(attempts, attempt)
		}
	}
	if current != nil {
		attempts = append(attempts, *current)
	}
	return attempts[max(0, len(attempts)-maxAttempts):]
}
