// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// slowStep is the duration after which a line about a running step is printed. There are no lines about shorter steps.
const slowStep = time.Second

// stillPeriod is the time between two lines about a step that is still running.
const stillPeriod = 20 * time.Second

// progress writes lines about steps that take long. Steps may run concurrently.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

func newProgress(w io.Writer) *progress {
	if w == nil {
		w = io.Discard
	}
	return &progress{w: w}
}

func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// If the line can't be written, the step continues.
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

// step runs f. If f takes longer than slowStep, step prints a line ("building kwok"), another line each stillPeriod, and a last
// one when f has ended ("kwok built after 66.0s").
func (p *progress) step(doing, done string, f func() error) error {
	start := time.Now()
	ended, announced := make(chan struct{}), make(chan bool)
	go func() { announced <- p.announce(doing, start, ended) }()
	err := f()
	close(ended)
	if <-announced && err == nil {
		p.printf("%s after %.1fs", done, time.Since(start).Seconds())
	}
	return err
}

// announce writes lines until the step has ended, and reports whether it wrote any.
func (p *progress) announce(doing string, start time.Time, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return false
	case <-time.After(slowStep):
		p.printf("%s ...", doing)
	}
	for {
		select {
		case <-ended:
			return true
		case <-time.After(stillPeriod):
			p.printf("still %s, %.0fs", doing, time.Since(start).Seconds())
		}
	}
}
