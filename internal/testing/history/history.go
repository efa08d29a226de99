// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/ledger"
)

// History is what programs did to claims. It is safe for concurrent use.
type History struct {
	began time.Time

	mu         sync.Mutex
	operations []*Operation
	counts     map[string]int
	// underWay are writes that have begun, each with a channel that is closed when it is entered.
	underWay map[*Operation]chan struct{}
	// problems are answers that could not be understood.
	problems []string
}

// New returns an empty history that begins now.
func New() *History {
	return &History{began: time.Now(), counts: map[string]int{}, underWay: map[*Operation]chan struct{}{}}
}

// Load reads what Store wrote.
func Load(r io.Reader) (*History, error) {
	h := New()
	return h, json.NewDecoder(r).Decode(&h.operations)
}

// Store writes the history as JSON.
func (h *History) Store(w io.Writer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(h.operations)
}

// Read enters what was listed with a quorum since a moment: the claims that there were.
func (h *History) Read(claims []resourceapi.ResourceClaim, began time.Time) {
	owners := map[string]string{}
	for i := range claims {
		for _, device := range ledger.DevicesOf(&claims[i]) {
			if owner := owners[device]; owner != "" {
				owners[device] = owner + "," + string(claims[i].UID)
			} else {
				owners[device] = string(claims[i].UID)
			}
		}
	}
	h.enter(&Operation{Program: "reader", Verb: "list resourceclaims", Owners: owners, Outcome: Applied, Start: began.Sub(h.began), End: time.Since(h.began)})
}

// Begin drops what there is so far: from now on claims have the devices that were listed
// since a moment. Writes that are under way are entered when they end.
func (h *History) Begin(claims []resourceapi.ResourceClaim, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations, h.problems = nil, nil
	for i := range claims {
		o := &Operation{Program: "before", Verb: "list resourceclaims", Outcome: Applied, Version: versionOf(&claims[i]), Start: began.Sub(h.began), End: time.Since(h.began)}
		o.name(&claims[i])
		h.operations = append(h.operations, o)
	}
}

// Wait waits until all writes are entered that have begun by now. What was read may show them before they have
// ended, and a history without them does not explain that.
func (h *History) Wait(ctx context.Context) error {
	h.mu.Lock()
	underWay := maps.Clone(h.underWay)
	h.mu.Unlock()
	for o, entered := range underWay {
		select {
		case <-entered:
		case <-ctx.Done():
			return fmt.Errorf("%s of %s has not ended: %w", o.Verb, o.Claim, context.Cause(ctx))
		}
	}
	return nil
}

// begin notes that a write is under way, until end is called.
func (h *History) begin(o *Operation) (end func()) {
	entered := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.underWay[o] = entered
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.underWay, o)
		close(entered)
	}
}

func (h *History) enter(o *Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
	h.counts[o.Verb+", "+string(o.Outcome)]++
}

// refused counts a write that has done nothing, by the code of the answer.
func (h *History) refused(o *Operation, code int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[fmt.Sprintf("%s, refused with %d", o.Verb, code)]++
}

func (h *History) problem(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, fmt.Sprintf(format, args...))
}

// lastUID is the UID of the claim that had a name last.
func (h *History) lastUID(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range slices.Backward(h.operations) {
		if o.Claim == name && o.UID != "" {
			return o.UID
		}
	}
	return ""
}

// Counts are the operations so far, also those that were dropped, by verb and outcome, and the writes that were
// refused.
func (h *History) Counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.counts)
}

// until is when what is unknown can't happen any more: after a later version of the claim
// was there.
func (h *History) until(unknown *Operation) time.Duration {
	end := time.Duration(-1)
	for _, o := range h.operations {
		if o.UID == unknown.UID && o.Outcome == Applied && !o.isRead() && unknown.Base > 0 && o.Version > unknown.Base && (end < 0 || o.End < end) {
			end = o.End
		}
	}
	return end
}

// devices are all that any operation names, sorted.
func (h *History) devices() []string {
	var all []string
	for _, o := range h.operations {
		all = append(all, o.Devices...)
		for device := range o.Owners {
			all = append(all, device)
		}
	}
	slices.SortFunc(all, strings.Compare)
	return slices.Compact(all)
}
