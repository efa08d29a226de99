// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"sync"

	"k8s.io/utils/lru"
)

// compilations remembers the outcome of the most recently used compilations.
// A second caller that asks for an expression which is just being compiled
// waits for that compilation: it costs milliseconds, and the parallel Filter of
// a scheduler asks for the same expression from many goroutines at once.
type compilations struct {
	mutex   sync.Mutex
	entries *lru.Cache
}

// compilation is the outcome for one expression. The fields are written once,
// before done.Do returns.
type compilation struct {
	done    sync.Once
	program *Program
	err     error
}

func newCompilations(size int) *compilations {
	return &compilations{entries: lru.New(size)}
}

// get returns the outcome for an expression and whether it was there already.
func (c *compilations) get(expression string, compile func(string) (*Program, error)) (*compilation, bool) {
	entry, hit := c.entry(expression)
	entry.done.Do(func() { entry.program, entry.err = compile(expression) })
	return entry, hit
}

func (c *compilations) entry(expression string) (*compilation, bool) {
	// Too long to be worth remembering, and refused without being parsed.
	if len(expression) > MaxExpressionLength {
		return &compilation{}, false
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found, ok := c.entries.Get(expression); ok {
		return found.(*compilation), true
	}
	entry := &compilation{}
	c.entries.Add(expression, entry)
	return entry, false
}
