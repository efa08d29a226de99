// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict remembers what an expression says of sets of devices.
//
// There may be a verdict for each set that a search completes, so memory is counted for many of them at once.
package verdict

import (
	"context"
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/celset/celset/cel/memo"
)

// Verdict is what an expression says of a set.
type Verdict struct {
	Satisfied bool
	// Cost is that of the evaluation.
	Cost uint64
}

// Evaluator evaluates the set that it has.
type Evaluator interface {
	EvaluateSet() (Verdict, error)
}

// Table has the verdicts of one expression on sets of devices, given by their positions. It is
// safe for concurrent use.
type Table struct {
	// width is how many bytes a position takes.
	width int
	limit int64
	grown func(bytes int)
	mutex sync.Mutex
	// verdicts are by the positions of the set. If there is no room for one more, all are forgotten.
	verdicts map[string]Verdict
	// taken are the bytes of the verdicts, counted those that grown was told of.
	taken, counted int64
	// busy has a channel for each set that is being evaluated. It is closed when that is done, and nil as long as
	// nobody waits.
	busy map[string]chan struct{}
}

const (
	// TableBytes is what an empty table takes.
	TableBytes = int(unsafe.Sizeof(Table{}))
	// verdictBytes is what a verdict takes beside the positions. Two places of three in a map are in use.
	verdictBytes = 3 * int(unsafe.Sizeof("")+unsafe.Sizeof(Verdict{})+1) / 2
	// chunk is how many bytes are counted at once.
	chunk = 1 << 10
)

// NewTable returns an empty table for sets of so many devices, which takes no more than about the
// given number of bytes. grown is told each time that it takes some more.
func NewTable(devices int, limit int64, grown func(bytes int)) *Table {
	t := &Table{width: 1, limit: limit, grown: grown, verdicts: map[string]Verdict{}, busy: map[string]chan struct{}{}}
	for most := devices - 1; most > 255; most >>= 8 {
		t.width++
	}
	return t
}

// Find returns the verdict on a set, and whether it was known. If it is not, the evaluator is
// asked, unless somebody else is evaluating that set: then that is waited for. Nothing is kept of
// an evaluation that fails. The order of the positions counts.
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

// begin returns the verdict on a set. If there is none, the caller is to find out, unless there is
// a channel: that is closed when somebody else who does is done.
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

// end keeps the verdict unless the evaluation failed, and lets those go on who wait for it.
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

// appendSet appends the positions, each with the same number of bytes.
func (t *Table) appendSet(to []byte, positions []int) []byte {
	for _, position := range positions {
		to = binary.LittleEndian.AppendUint64(to, uint64(position))
		to = to[:len(to)-8+t.width]
	}
	return to
}
