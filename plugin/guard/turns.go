// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import v1 "k8s.io/api/core/v1"

// Turns decides which pods may be tried now. [Guard] implements it in a scheduler. [Open] implements it in a program that
// has its own order for trying pods.
type Turns interface {
	// Gate reports whether a pod that needs devices must wait outside of the queue.
	Gate(r Request) bool
	// Admit begins an attempt for a pod, or refuses the pod.
	Admit(r Request) (*Attempt, *Refusal)
	// MustReport records that another plugin gates a pod for the reason why. It reports whether the pod must be queued anyway,
	// so that an attempt writes the reason to the pod.
	MustReport(pod *v1.Pod, why string, activate func(*v1.Pod)) bool
	// Refused records that PreFilter refused a pod before it called Admit. The attempt writes the reason to the pod.
	Refused(pod *v1.Pod)
}

var (
	_ Turns = &Guard{}
	_ Turns = Open{}
)

// Open admits every pod without limits.
type Open struct{}

// Gate implements [Turns].
func (Open) Gate(Request) bool { return false }

// Admit implements [Turns]. It returns a nil Attempt, whose methods do nothing.
func (Open) Admit(Request) (*Attempt, *Refusal) { return nil, nil }

// MustReport implements [Turns].
func (Open) MustReport(*v1.Pod, string, func(*v1.Pod)) bool { return false }

// Refused implements [Turns].
func (Open) Refused(*v1.Pod) {}
