// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import v1 "k8s.io/api/core/v1"

// Turns says which pods are to be tried now. It is a [Guard] in a scheduler, and [Open] in a program that tries pods in an order
// of its own.
type Turns interface {
	// Gate reports whether a pod that wants devices has to wait outside of the queue.
	Gate(r Request) bool
	// Admit begins an attempt, or refuses it.
	Admit(r Request) (*Attempt, *Refusal)
	// Tell notes that a pod is gated, and reports whether the pod is to be queued nevertheless.
	Tell(pod *v1.Pod, why string, activate func(*v1.Pod)) bool
	// Told notes that an attempt is refused before Admit is called.
	Told(pod *v1.Pod)
}

var (
	_ Turns = &Guard{}
	_ Turns = Open{}
)

// Open lets every pod be tried, for any time.
type Open struct{}

// Gate implements [Turns].
func (Open) Gate(Request) bool { return false }

// Admit implements [Turns]. The methods of its attempt do nothing.
func (Open) Admit(Request) (*Attempt, *Refusal) { return nil, nil }

// Tell implements [Turns].
func (Open) Tell(*v1.Pod, string, func(*v1.Pod)) bool { return false }

// Told implements [Turns].
func (Open) Told(*v1.Pod) {}
