// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Upstream's PreEnqueue gates a pod whose claims it can't use: a claim is missing, is being deleted, or was made for another pod.
// A pod that is gated has no event and no condition, so its owner sees no reason. Most of these pods need no reason: their
// claims are about to be made from templates. A pod that is still gated after [untoldPatience] is let through. PreFilter
// then refuses it with the reason, and upstream's hints have it tried again as before.

// untoldPatience is the time that a pod is gated without a reason. kube-controller-manager makes claims within it.
const untoldPatience = 5 * time.Second

// toldFor is the time for which a pod is let through then, in multiples of the former. The pods of a group are let through when
// all of them are, and are not created at once.
const toldFor = 12

// untold has the pods that are gated without a reason. It is safe for concurrent use.
type untold struct {
	patience time.Duration
	mutex    sync.Mutex
	// due maps the UID of a pod that waits to whether its time is over.
	due map[types.UID]bool
}

func newUntold() *untold { return &untold{patience: untoldPatience, due: map[types.UID]bool{}} }

// isDue reports whether the time of a pod is over. Otherwise the pod is activated when it is: the queue then asks again.
func (u *untold) isDue(pod *v1.Pod, activate func(*v1.Pod)) bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	due, waits := u.due[pod.UID]
	if waits {
		return due
	}
	u.due[pod.UID] = false
	waiting := waiter(pod, activate)
	time.AfterFunc(u.patience, func() {
		u.locked(func() { u.due[waiting.UID] = true })
		waiting.activate(waiting.Pod)
		time.AfterFunc(toldFor*u.patience, func() { u.locked(func() { delete(u.due, waiting.UID) }) })
	})
	return false
}

func (u *untold) locked(f func()) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	f()
}
