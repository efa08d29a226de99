// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict remembers what an expression says of sets of devices.
//
// There may be a verdict for each set that a search completes. An evaluation takes some
// microseconds, so to remember it must take much less: the verdicts of one expression on the
// devices of one hardware type are in one table, in which most sets are a number, and memory is
// counted for many of them at once.
package verdict

import (
	"context"
	"encoding/binary"
	"math/bits"
	"sync"

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
	// bits is what a position takes.
	bits  int
	mutex sync.Mutex
	// If there is no room for one more verdict, all of its kind are forgotten.
	numbers numbers
	texts   texts
	// waiting has a channel for each set that somebody waits for.
	waiting map[set]chan struct{}
}

// set is a number if that is not 0, else a text.
type set struct {
	number uint64
	text   string
}

// entry is a verdict in one word: the cost, whether the set is satisfactory, and a 1. 0 is none.
type entry uint64

const (
	// open: somebody is finding out. It is no verdict, because none is kept that cost as much.
	open = ^entry(0)
	most = 1<<60 - 1
)

func entryOf(v Verdict) entry {
	e := entry(v.Cost<<2 | 1)
	if v.Satisfied {
		e |= 2
	}
	return e
}

func (e entry) verdict() Verdict { return Verdict{e&2 != 0, uint64(e >> 2)} }

// NewTable returns an empty table for sets of so many devices, which takes no more than about the
// given number of bytes. grown is told each time that it takes some more.
func NewTable(devices int, limit int64, grown func(bytes int)) *Table {
	return &Table{
		bits:    max(1, bits.Len(uint(max(devices, 1)-1))),
		numbers: numbers{limit: limit / 2, grown: grown},
		texts:   texts{limit: limit / 2, grown: grown},
	}
}

// Find returns the verdict on a set, and whether it was known. If it is not, the evaluator is
// asked, unless somebody else is evaluating that set: then that is waited for. Nothing is kept of
// an evaluation that fails. The order of the positions counts.
func (t *Table) Find(ctx context.Context, positions []int, evaluator Evaluator) (v Verdict, known bool, err error) {
	of := t.setOf(positions)
	for {
		e, busy := t.begin(of)
		if e != 0 {
			return e.verdict(), true, nil
		}
		if busy == nil {
			break
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return v, false, memo.ErrInterrupted
		}
	}
	result := entry(0)
	defer func() { t.end(of, result) }()
	v, err = evaluator.EvaluateSet()
	if err == nil && v.Cost <= most {
		result = entryOf(v)
	}
	return v, false, err
}

// begin returns what is known of a set. If nothing is, the caller is to find out, unless there is
// a channel: that is closed when somebody else who does is done.
func (t *Table) begin(of set) (e entry, busy <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch e := t.get(of); e {
	case open:
	case 0:
		t.put(of, open)
		return 0, nil
	default:
		return e, nil
	}
	done := t.waiting[of]
	if done == nil {
		if t.waiting == nil {
			t.waiting = make(map[set]chan struct{})
		}
		done = make(chan struct{})
		t.waiting[of] = done
	}
	return 0, done
}

// end keeps the verdict if there is one, and lets those go on who wait for it.
func (t *Table) end(of set, result entry) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.put(of, result)
	if done := t.waiting[of]; done != nil {
		close(done)
		delete(t.waiting, of)
	}
}

// get returns 0 if there is none.
func (t *Table) get(of set) entry {
	if of.number != 0 {
		return t.numbers.get(of.number)
	}
	return t.texts.get(of.text)
}

// put replaces an entry, also by 0.
func (t *Table) put(of set, e entry) {
	if of.number != 0 {
		t.numbers.put(of.number, e)
	} else {
		t.texts.put(of.text, e)
	}
}

// setOf is a number if the positions fit in one. It begins with a 1, so that sets of different
// sizes are different numbers, and none is 0.
func (t *Table) setOf(positions []int) set {
	if len(positions)*t.bits >= 64 {
		return set{text: text(positions)}
	}
	number := uint64(1)
	for _, position := range positions {
		number = number<<t.bits | uint64(position)
	}
	return set{number: number}
}

func text(positions []int) string {
	memory := make([]byte, 0, 4*len(positions))
	for _, position := range positions {
		memory = binary.BigEndian.AppendUint32(memory, uint32(position))
	}
	return string(memory)
}
