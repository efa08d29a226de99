// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"sync"

	"github.com/celset/celset/allocator"
)

// failedNodes are those of one attempt that don't fit because an expression failed on their
// devices. What the nodes answer is the same for all of them; which they are is told once for the
// pod.
type failedNodes struct {
	mutex sync.Mutex
	count int
	// first is that of the least name, so that the same nodes have the same message.
	first *allocator.EvaluationError
}

func (f *failedNodes) note(err error) {
	failure, ok := errors.AsType[*allocator.EvaluationError](err)
	if !ok {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.count++
	if f.first == nil || failure.Node < f.first.Node {
		f.first = failure
	}
}

// String is empty if there are none.
func (f *failedNodes) String() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.first == nil {
		return ""
	}
	return fmt.Sprintf("an expression fails on devices of %d nodes, such as %s", f.count, f.first.Detail())
}
