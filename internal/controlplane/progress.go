// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// slowStep is the time after which a step is worth a line: below it, nobody
// wonders what is going on.
const slowStep = time.Second

// progress reports steps that take long. Steps may run concurrently.
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
	// A reader of progress that went away is no reason to fail.
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

// step runs f. If f takes longer than slowStep, a line says what is going on
// ("building kwok"), and another one that it is over ("kwok built after 66.0s").
func (p *progress) step(doing, done string, f func() error) error {
	start := time.Now()
	announced := make(chan struct{})
	timer := time.AfterFunc(slowStep, func() {
		defer close(announced)
		p.printf("%s ...", doing)
	})
	err := f()
	if timer.Stop() {
		return err
	}
	<-announced
	if err == nil {
		p.printf("%s after %.1fs", done, time.Since(start).Seconds())
	}
	return err
}
