// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"hash/maphash"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/celset/celset/cel"
)

// An expression that does not compile is in the events of its pod, for whoever wrote it. It is in the
// log as well, for the administrator who is asked why pods wait, and who may have written it: a
// DeviceClass has constraints, too. A pod is tried again and again, and pods are made from templates,
// so each mistake is logged once. Other mistakes are easily made, and anybody may make them: a
// namespace has a number of them at once, and then one from time to time.

const (
	// maxMistakes is how many are remembered to have been logged, and of how many namespaces it is
	// known how many they had.
	maxMistakes = 1024
	// mistakesAtOnce are logged for a namespace, and mistakesPerSecond after that: one a minute.
	mistakesAtOnce    = 10
	mistakesPerSecond = 1.0 / 60
	// maxLoggedMistake is how many bytes of one are logged.
	maxLoggedMistake = 4096
)

// mistakes logs expressions that don't compile. It is safe for concurrent use.
type mistakes struct {
	clock clock.PassiveClock
	seed  maphash.Seed
	// logged has those that were, so that they are not again.
	logged *lru.Cache

	// mutex is held from the look whether a mistake was logged until it is.
	mutex sync.Mutex
	// namespaces has the mistakeShare of each.
	namespaces *lru.Cache
}

// mistakeShare is what a namespace may still write into the log.
type mistakeShare struct {
	limiter flowcontrol.PassiveRateLimiter
	// leftOut counts attempts whose mistake would have been logged, since the last one that was.
	leftOut int
}

// mistake is what makes one differ from others: which claim or class has it does not matter.
type mistake struct{ variable, expression, message string }

func newMistakes(clock clock.PassiveClock) *mistakes {
	return &mistakes{clock: clock, seed: maphash.MakeSeed(), logged: lru.New(maxMistakes), namespaces: lru.New(maxMistakes)}
}

// log writes err if it is that of an expression that does not compile, and nothing else.
func (m *mistakes) log(ctx context.Context, pod *v1.Pod, err error) {
	failure, ok := errors.AsType[*cel.Error](err)
	if !ok {
		return
	}
	key := maphash.Comparable(m.seed, mistake{failure.Variable, failure.Expression, failure.Message})
	leftOut, ok := m.admit(pod.Namespace, key)
	if !ok {
		return
	}
	text := err.Error()
	if len(text) > maxLoggedMistake {
		text = strings.ToValidUTF8(text[:maxLoggedMistake], "") + " ..."
	}
	klog.FromContext(ctx).Info("The expression of a CEL device constraint does not compile", "pod", klog.KObj(pod), "mistake", text, "leftOut", leftOut)
}

// admit tells whether a mistake is to be logged, and how many were left out before it.
func (m *mistakes) admit(namespace string, key uint64) (leftOut int, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, known := m.logged.Get(key); known {
		return 0, false
	}
	share := m.shareOf(namespace)
	if !share.limiter.TryAccept() {
		share.leftOut++
		return 0, false
	}
	m.logged.Add(key, nil)
	leftOut, share.leftOut = share.leftOut, 0
	return leftOut, true
}

func (m *mistakes) shareOf(namespace string) *mistakeShare {
	if known, ok := m.namespaces.Get(namespace); ok {
		return known.(*mistakeShare)
	}
	share := &mistakeShare{limiter: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(mistakesPerSecond, mistakesAtOnce, m.clock)}
	m.namespaces.Add(namespace, share)
	return share
}
