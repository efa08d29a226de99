// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import "sync"

// largestShare is the part of a memory that one value may take: a fourth.
const largestShare = 4

// Memory is what memos share. It is safe for concurrent use.
type Memory struct {
	mutex       sync.Mutex
	limit, used int64
	// ends is between the newest element, which is next, and the oldest.
	ends element
	// parts has those of all values, by what they are.
	parts map[any]*heldPart
}

// Size is what a value takes.
type Size struct {
	// Bytes are those of the value alone, Parts what it has in common with others.
	Bytes int
	Parts []Part
}

// Part is something that several values point to. It counts once.
type Part struct {
	// Of is what it is: mostly a pointer to it.
	Of    any
	Bytes int
}

type heldPart struct {
	bytes int64
	// holders is the number of values that have it.
	holders int
}

// partBytes is about what it takes to know of a part.
const partBytes = 96

// New returns an empty Memory for that many bytes.
func New(limit int64) *Memory {
	m := &Memory{limit: max(limit, 0)}
	m.ends.next, m.ends.previous = &m.ends, &m.ends
	return m
}

// Limit is the number of bytes that there may be.
func (m *Memory) Limit() int64 { return m.limit }

// Used is the number of bytes that are taken.
func (m *Memory) Used() int64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.used
}

// Forget drops all that is kept.
func (m *Memory) Forget() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for m.ends.next != &m.ends {
		m.drop(m.ends.next)
	}
}

// element is a place in the order of use. All of it is guarded by the mutex of the memory.
type element struct {
	// next is older, previous newer. Both are nil if the element is not kept.
	next, previous *element
	bytes          int64
	parts          []Part
	owner          owner
}

// owner is told when its element is not kept any more. The memory is locked then.
type owner interface{ dropped() }

func (e *element) isKept() bool { return e.next != nil }

// insert makes an element the newest.
func (m *Memory) insert(e *element) {
	e.previous, e.next = &m.ends, m.ends.next
	e.previous.next, e.next.previous = e, e
}

func (e *element) unlink() {
	e.previous.next, e.next.previous = e.next, e.previous
	e.previous, e.next = nil, nil
}

// use makes an element that is kept the newest.
func (m *Memory) use(e *element) {
	if m.ends.next == e || !e.isKept() {
		return
	}
	e.unlink()
	m.insert(e)
}

// charge counts more bytes and parts for an element. It may be dropped then, and so may
// others be.
func (m *Memory) charge(e *element, bytes int, parts []Part) {
	if !e.isKept() {
		return
	}
	e.bytes += int64(bytes)
	m.used += int64(bytes)
	total := e.bytes
	for _, part := range parts {
		total += int64(part.Bytes)
		m.hold(part)
	}
	e.parts = append(e.parts, parts...)
	if total > m.limit/largestShare {
		m.drop(e)
	}
	for m.used > m.limit {
		m.drop(m.ends.previous)
	}
}

func (m *Memory) drop(e *element) {
	e.unlink()
	m.used -= e.bytes
	for _, part := range e.parts {
		m.release(part)
	}
	e.bytes, e.parts = 0, nil
	e.owner.dropped()
}

// hold counts a part unless it is counted.
func (m *Memory) hold(part Part) {
	held := m.parts[part.Of]
	if held == nil {
		if m.parts == nil {
			m.parts = make(map[any]*heldPart)
		}
		held = &heldPart{bytes: int64(part.Bytes) + partBytes}
		m.parts[part.Of] = held
		m.used += held.bytes
	}
	held.holders++
}

func (m *Memory) release(part Part) {
	held := m.parts[part.Of]
	if held.holders--; held.holders == 0 {
		m.used -= held.bytes
		delete(m.parts, part.Of)
	}
}
