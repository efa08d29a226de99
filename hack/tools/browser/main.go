// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command browser does in a headless Chromium what a person would do, for tests of pages.
//
//	browser --program=/usr/bin/chromium < steps.json > seen.json
//
// The input is a list of [Step], the output [Seen]. It ends with the first step that does not
// succeed in time, and says which.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Step is one thing to do. Elements are named by CSS selectors.
type Step struct {
	// Open goes to a URL.
	Open string `json:"open,omitempty"`
	// Fill writes With into a field, in place of what is there.
	Fill string `json:"fill,omitempty"`
	With string `json:"with,omitempty"`
	// Click clicks on an element.
	Click string `json:"click,omitempty"`
	// Read waits until an element is there, and Text, if it is given, is in it; what the element
	// says is in Seen.Texts under its selector.
	Read string `json:"read,omitempty"`
	Text string `json:"text,omitempty"`
	// Shoot writes a picture of the whole page into a file, in a window of Width, 1000 if it is
	// not given, on dark ground if Dark is set.
	Shoot string `json:"shoot,omitempty"`
	Width int64  `json:"width,omitempty"`
	Dark  bool   `json:"dark,omitempty"`
}

// Seen is what came of the steps.
type Seen struct {
	Texts map[string]string `json:"texts"`
	// Requests are the URLs that were asked for, Complaints what the page wrote to the console
	// and what its policy kept it from.
	Requests   []string `json:"requests"`
	Complaints []string `json:"complaints"`
	// Location is where the page was in the end.
	Location string `json:"location"`
}

const perStep = time.Minute

func main() {
	program := flag.String("program", "chromium", "Chromium or what is made from it.")
	flag.Parse()
	seen, err := run(*program)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(seen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(program string) (*Seen, error) {
	var steps []Step
	if err := json.NewDecoder(os.Stdin).Decode(&steps); err != nil {
		return nil, fmt.Errorf("read the steps: %w", err)
	}
	// Without a sandbox of its own it runs as root, too. Certificates of tests are signed by nobody.
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("ignore-certificate-errors", true))...)
	defer stop()
	ctx, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	seen, mutex := &Seen{Texts: map[string]string{}, Requests: []string{}, Complaints: []string{}}, sync.Mutex{}
	chromedp.ListenTarget(ctx, func(event any) {
		mutex.Lock()
		defer mutex.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			seen.Requests = append(seen.Requests, e.Request.Method+" "+e.Request.URL)
		case *runtime.EventExceptionThrown:
			seen.Complaints = append(seen.Complaints, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			seen.Complaints = append(seen.Complaints, fmt.Sprintf("console.%s", e.Type))
		}
	})
	if err := chromedp.Run(ctx, network.Enable(), runtime.Enable()); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	for i, step := range steps {
		if err := step.do(ctx, seen.Texts); err != nil {
			said := ""
			_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText`, &said))
			return nil, fmt.Errorf("step %d: %+v: %w; the page says:\n%s", i, step, err, said)
		}
	}
	err := chromedp.Run(ctx, chromedp.Location(&seen.Location))
	mutex.Lock()
	defer mutex.Unlock()
	return seen, err
}

func (s Step) do(ctx context.Context, texts map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, perStep)
	defer cancel()
	switch {
	case s.Open != "":
		return chromedp.Run(ctx, chromedp.Navigate(s.Open))
	case s.Fill != "":
		return chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).value = ""`, s.Fill), nil), chromedp.SendKeys(s.Fill, s.With, chromedp.ByQuery))
	case s.Click != "":
		return chromedp.Run(ctx, chromedp.Click(s.Click, chromedp.ByQuery))
	case s.Read != "":
		said := ""
		wait := fmt.Sprintf(`(() => { const e = document.querySelector(%q); return e !== null && e.innerText.includes(%q) })()`, s.Read, s.Text)
		err := chromedp.Run(ctx, chromedp.Poll(wait, nil, chromedp.WithPollingTimeout(perStep)), chromedp.Text(s.Read, &said, chromedp.ByQuery))
		texts[s.Read] = said
		return err
	case s.Shoot != "":
		return s.shoot(ctx)
	default:
		return fmt.Errorf("the step says nothing")
	}
}

func (s Step) shoot(ctx context.Context) error {
	if s.Width == 0 {
		s.Width = 1000
	}
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	var picture []byte
	err := chromedp.Run(ctx, chromedp.EmulateViewport(s.Width, 700), emulateScheme(scheme), chromedp.FullScreenshot(&picture, 100))
	if err != nil {
		return err
	}
	return os.WriteFile(s.Shoot, picture, 0o644)
}
