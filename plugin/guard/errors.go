// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A pod's back-off doubles with each error, from firstErrorBackOff to longestErrorBackOff. These values are the defaults of
// podInitialBackoffSeconds and podMaxBackoffSeconds of kube-scheduler.
const (
	firstErrorBackOff   = time.Second
	longestErrorBackOff = 10 * time.Second
)

// attemptErrors maps the UIDs of pods to their consecutive attempts with errors. Bound and deleted pods are removed.
type attemptErrors map[types.UID]attemptError

type attemptError struct {
	// inARow counts consecutive attempts that ended with an error.
	inARow int
	last   time.Time
}

// add records that an attempt for the pod ended with an error.
func (e *attemptErrors) add(pod *v1.Pod, now time.Time) {
	if *e == nil {
		*e = attemptErrors{}
	}
	(*e)[pod.UID] = attemptError{(*e)[pod.UID].inARow + 1, now}
}

// next returns the end of the pod's back-off. It returns the zero time if the pod's last attempt ended without an error.
func (e attemptErrors) next(pod *v1.Pod) time.Time {
	failed, known := e[pod.UID]
	if !known {
		return time.Time{}
	}
	delay := longestErrorBackOff
	if doublings := failed.inARow - 1; doublings < 4 {
		delay = min(longestErrorBackOff, firstErrorBackOff<<doublings)
	}
	return failed.last.Add(delay)
}

func (e attemptErrors) forget(pod *v1.Pod) { delete(e, pod.UID) }
