// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict caches the verdicts of an expression on sets of devices.
//
// A search may add a verdict for each complete set. So the table reports its growth in chunks of many verdicts.
package verdict

import (
	"context"
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/celset/celset/cel/memo"
)

// Verdict is the value of an expression for a set, with the cost of the evaluation.
type Verdict struct {
	Satisfied bool
	// Cost is the cost of the evaluation, in CEL cost units.
	Cost uint64
}

// Evaluator evaluates an expression for the set that is passed to Find.
type Evaluator interface {
	EvaluateSet() (Verdict, error)
}

// Table caches the verdicts of one expression on sets of devices. A set is given by positions. Table is concurrency-safe.
type Table struct {
	// width is the number of bytes that encode a position.
	width int
	limit int64
	grown func(bytes int)
	mutex sync.Mutex
	// verdicts maps encoded sets to verdicts. It is cleared when it is full.
	verdicts map[string]Verdict
	// taken is the size of the verdicts in bytes. counted is the size that has been reported to grown.
	taken, counted int64
	// busy has an entry for each set under evaluation. A second caller creates the channel. The end of the evaluation closes it.
	busy map[string]chan struct{}
}

const (
	// TableBytes is the size of an empty table.
	TableBytes = int(unsafe.Sizeof(Table{}))
	// verdictBytes is the estimated size of a verdict without the positions, if a map uses two of three slots.
	verdictBytes = 3 * int(unsafe.Sizeof("")+unsafe.Sizeof(Verdict{})+1) / 2
	// chunk is the unit of reported growth, in bytes.
	chunk = 1 << 10
)

// NewTable returns an empty table for a node with the given number of devices. The table uses about limit bytes at most. It
// calls grown when its size has grown.
func NewTable(devices int, limit int64, grown func(bytes int)) *Table {
	t := &Table{width: 1, limit: limit, grown: grown, verdicts: map[string]Verdict{}, busy: map[string]chan struct{}{}}
	for most := devices - 1; most > 255; most >>= 8 {
		t.width++
	}
	return t
}

// Find returns the verdict on a set. known is true if the verdict was cached. Otherwise Find calls the evaluator. If another
// caller is evaluating the same set, Find waits for it. A failed evaluation is not cached. The order of positions matters.
func (t *Table) Find(ctx context.Context, positions []int, evaluator Evaluator) (v Verdict, known bool, err error) {
	var memory [64]byte
	of := t.appendSet(memory[:0], positions)
	for {
		v, known, busy := t.begin(of)
		if known {
			return v, true, nil
		}
		if busy == nil {
			break
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return Verdict{}, false, memo.ErrInterrupted
		}
	}
	failed := true
	defer func() { t.end(string(of), v, failed) }()
	v, err = evaluator.EvaluateSet()
	failed = err != nil
	return v, false, err
}

// begin returns the cached verdict on a set. If there is no verdict and busy is nil, the caller must evaluate the set and call
// end. If busy is not nil, another caller is evaluating the set, and busy is closed when it ends.
func (t *Table) begin(of []byte) (v Verdict, known bool, busy <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if v, known = t.verdicts[string(of)]; known {
		return v, true, nil
	}
	done, isBusy := t.busy[string(of)]
	if isBusy && done == nil {
		done = make(chan struct{})
	}
	t.busy[string(of)] = done
	return v, false, done
}

// end stores the verdict unless the evaluation failed, and wakes the callers that wait for it.
func (t *Table) end(of string, v Verdict, failed bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if done := t.busy[of]; done != nil {
		close(done)
	}
	delete(t.busy, of)
	if failed {
		return
	}
	bytes := int64(verdictBytes + (len(of)+7)&^7)
	if t.taken+bytes > t.limit {
		t.verdicts, t.taken = map[string]Verdict{}, 0
	}
	t.verdicts[of] = v
	if t.taken += bytes; t.taken > t.counted {
		t.counted += chunk
		t.grown(chunk)
	}
}

// appendSet appends the encoded positions. Each position has the same number of bytes.
func (t *Table) appendSet(to []byte, positions []int) []byte {
	for _, position := range positions {
		to = binary.LittleEndian.AppendUint64(to, uint64(position))
		to = to[:len(to)-8+t.width]
	}
	return to
}
