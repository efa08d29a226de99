// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import v1 "k8s.io/api/core/v1"

// Turns decides which pods may be tried now. [Guard] implements it in a scheduler. [Open] implements it in a program that tries
// pods in an order of its own.
type Turns interface {
	// Gate reports whether a pod that needs devices must wait outside of the queue.
	Gate(r Request) bool
	// Admit begins an attempt or refuses it.
	Admit(r Request) (*Attempt, *Refusal)
	// MustReport records that a pod is gated, and reports whether the pod must be queued anyway.
	MustReport(pod *v1.Pod, why string, activate func(*v1.Pod)) bool
	// Refused records that an attempt was refused before Admit was called. The attempt reports the reason.
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

// Admit implements [Turns]. The methods of a nil attempt do nothing.
func (Open) Admit(Request) (*Attempt, *Refusal) { return nil, nil }

// MustReport implements [Turns].
func (Open) MustReport(*v1.Pod, string, func(*v1.Pod)) bool { return false }

// Refused implements [Turns].
func (Open) Refused(*v1.Pod) {}
