// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/celset/celset/internal/printable"
)

// progressAfter is the delay before a command shows its progress.
const progressAfter = 2 * time.Second

// progress shows the progress of a slow command in one line of stderr, if stderr is a terminal.
type progress struct {
	to      io.Writer
	what    string
	begun   time.Time
	isShown bool
}

// newProgress returns a progress. It shows nothing unless stderr is a terminal.
func (o *options) newProgress(what string) *progress {
	p := &progress{what: what, begun: time.Now()}
	if file, ok := printable.Unescaped(o.ErrOut).(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.to = file
	}
	return p
}

// at shows how many of all items are finished.
func (p *progress) at(done, all int) {
	p.show(fmt.Sprintf("%d of %d %s", done, all, p.what))
}

func (p *progress) show(line string) {
	if p.to == nil || time.Since(p.begun) < progressAfter {
		return
	}
	p.isShown = true
	_, _ = fmt.Fprint(p.to, "\r\x1b[K", line)
}

// read shows the number of objects read.
func (p *progress) read(objects int) { p.show(fmt.Sprintf("%d %s read", objects, p.what)) }

// during shows a text and the elapsed time while f runs.
func (p *progress) during(f func()) {
	ended, shown := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(shown)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				p.end()
				return
			case <-tick.C:
				p.show(fmt.Sprintf("%s, %.0fs", p.what, time.Since(p.begun).Seconds()))
			}
		}
	}()
	defer func() {
		close(ended)
		<-shown
	}()
	f()
}

// end removes the progress from the terminal.
func (p *progress) end() {
	if p.isShown {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
		p.isShown = false
	}
}

// announce shows a text while the number of items is still unknown. The caller calls end to remove the text.
func (o *options) announce(what string) (end func()) {
	p := o.newProgress(what)
	if p.to == nil {
		return func() {}
	}
	shown := make(chan struct{})
	timer := time.AfterFunc(progressAfter, func() {
		defer close(shown)
		_, _ = fmt.Fprintf(p.to, "\r\x1b[K%s ...", what)
		p.isShown = true
	})
	return func() {
		if !timer.Stop() {
			<-shown
		}
		p.end()
	}
}
