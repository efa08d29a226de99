// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"
)

// Limits are the arguments of the plugin that are for all its profiles.
type Limits struct {
	// SharePercent is the part of the scheduler's time that a namespace may take while
	// others wait; 100 means that there are no shares. ShareBurst is what it may take at
	// once.
	SharePercent int32
	ShareBurst   time.Duration
	// BackOffInitial is how long a claim is left alone after an attempt that used up a
	// budget or its time. It is doubled each time, up to BackOffMax.
	BackOffInitial, BackOffMax time.Duration
}

// backOff is how long a claim is left alone after so many failures.
func (l *Limits) backOff(failures int) time.Duration {
	duration := l.BackOffInitial
	for range failures - 1 {
		// Compared before it is doubled, which may overflow.
		if duration >= l.BackOffMax/2 {
			return l.BackOffMax
		}
		duration *= 2
	}
	return min(duration, l.BackOffMax)
}

// message is why a pod of the namespace is refused.
func (l *Limits) message(namespace string) string {
	return fmt.Sprintf("pods of namespace %s took more than %d percent of the scheduler's time, and pods of other namespaces wait: "+
		"tried again when these had their turn", namespace, l.SharePercent)
}
