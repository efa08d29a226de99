// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"io"
	"sync"
	"time"
)

// How long watches go on at most, and how long they may be silent.
const (
	maxWatch   = 10 * time.Second
	maxSilence = 3 * time.Second
)

// watched is the body of a watch that ends early, or is silent for a while.
type watched struct {
	body io.ReadCloser
	// silent is closed when nothing is told for a while, loud when that ends.
	silent, loud chan struct{}
	done         chan struct{}
	close        func() error
}

// watch returns the body of a watch that has the fault, and that ends with a partition.
func (f *Faults) watch(drawn fault, path string, body io.ReadCloser) io.ReadCloser {
	w := &watched{body: body, silent: make(chan struct{}), loud: make(chan struct{}), done: make(chan struct{})}
	w.close = sync.OnceValue(func() error {
		close(w.done)
		return body.Close()
	})
	go w.interrupt(f, drawn, path)
	return w
}

// interrupt does to the watch what is to be done, at a time before maxWatch.
func (w *watched) interrupt(f *Faults, drawn fault, path string) {
	at := time.Duration(drawn.part * float64(maxWatch))
	switch drawn.kind {
	case WatchEnded:
		if w.wait(at, drawn.cut) {
			_ = w.close()
		}
	case WatchHeld, WatchSkipped:
		if !w.wait(at, drawn.cut) {
			return
		}
		close(w.silent)
		if !w.wait(time.Duration((1-drawn.part)*float64(maxSilence)), drawn.cut) {
			return
		}
		if drawn.kind == WatchHeld {
			close(w.loud)
			w.wait(-1, drawn.cut)
			return
		}
		f.mu.Lock()
		f.tooOld.Insert(path)
		f.mu.Unlock()
		_ = w.close()
	default:
		w.wait(-1, drawn.cut)
	}
}

// wait waits for a time, for ever if it is negative, and returns false if the watch has
// ended meanwhile. It ends with a partition.
func (w *watched) wait(d time.Duration, cut <-chan struct{}) bool {
	var over <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-w.done:
		return false
	case <-cut:
		_ = w.close()
		return false
	}
}

// Read hands out what was told, later if it is held, never if the watch ends before.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	select {
	case <-w.silent:
		select {
		case <-w.loud:
		case <-w.done:
			return 0, io.ErrUnexpectedEOF
		}
	default:
	}
	return n, err
}

// Close ends the watch.
func (w *watched) Close() error { return w.close() }
