// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"
)

// Limits are the guard's settings. They apply to all profiles of the scheduler.
type Limits struct {
	// SharePercent is the percentage of the scheduler's time that a namespace may use while others wait. 100 disables shares.
	// ShareBurst is the size of each namespace's token bucket.
	SharePercent int32
	ShareBurst   time.Duration
	// BackOffInitial is the back-off of a claim after its first attempt that exceeded a budget or its time. The back-off
	// doubles with each further such attempt, up to BackOffMax.
	BackOffInitial, BackOffMax time.Duration
}

// backOff returns the back-off of a claim after the given number of consecutive failures.
func (l *Limits) backOff(failures int) time.Duration {
	duration := l.BackOffInitial
	for range failures - 1 {
		// The limit is compared with half of the maximum, because doubling first may overflow.
		if duration >= l.BackOffMax/2 {
			return l.BackOffMax
		}
		duration *= 2
	}
	return min(duration, l.BackOffMax)
}

// message returns the reason for refusing a pod of the namespace.
func (l *Limits) message(namespace string) string {
	return fmt.Sprintf("pods of namespace %s took more than %d percent of the scheduler's time while pods of other namespaces wait: "+
		"the scheduler tries the pods of other namespaces first", namespace, l.SharePercent)
}
