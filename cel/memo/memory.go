// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import "sync"

// largestShare limits the size of one value to a quarter of the memory.
const largestShare = 4

// Memory holds the entries of several Memos and bounds their total size. It is safe for concurrent use.
type Memory struct {
	mutex       sync.Mutex
	limit, used int64
	// ends is the head of a ring of elements in the order of use: ends.next is the newest element, and ends.previous the
	// oldest.
	ends element
	// parts has the parts of all stored values, keyed by Part.Of.
	parts map[any]*heldPart
}

// Size is the size of a value in bytes.
type Size struct {
	// Bytes is the size without shared parts. Parts are the parts that the value shares with other values.
	Bytes int
	Parts []Part
}

// Part is memory that several values point to. It counts once, however many values point to it.
type Part struct {
	// Of identifies the memory. It is usually a pointer to the memory.
	Of    any
	Bytes int
}

type heldPart struct {
	bytes int64
	// holders is the number of stored values that point to the part.
	holders int
}

// partBytes is the approximate memory for the bookkeeping of a part.
const partBytes = 96

// New returns an empty Memory with a limit in bytes.
func New(limit int64) *Memory {
	m := &Memory{limit: max(limit, 0)}
	m.ends.next, m.ends.previous = &m.ends, &m.ends
	return m
}

// Limit returns the maximum number of bytes.
func (m *Memory) Limit() int64 { return m.limit }

// Used returns the total size of all entries in bytes.
func (m *Memory) Used() int64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.used
}

// Forget drops all entries.
func (m *Memory) Forget() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for m.ends.next != &m.ends {
		m.drop(m.ends.next)
	}
}

// element is the place of an entry in the order of use. The mutex of the memory guards all fields.
type element struct {
	// next is the next older element, and previous the next newer one. Both are nil if the element was dropped.
	next, previous *element
	bytes          int64
	parts          []Part
	owner          owner
}

// owner is notified when its element is dropped. The memory holds its lock during the call.
type owner interface{ dropped() }

func (e *element) isStored() bool { return e.next != nil }

// insert adds an element as the newest.
func (m *Memory) insert(e *element) {
	e.previous, e.next = &m.ends, m.ends.next
	e.previous.next, e.next.previous = e, e
}

func (e *element) unlink() {
	e.previous.next, e.next.previous = e.next, e.previous
	e.previous, e.next = nil, nil
}

// use makes an element the newest. It does nothing if the element was dropped.
func (m *Memory) use(e *element) {
	if m.ends.next == e || !e.isStored() {
		return
	}
	e.unlink()
	m.insert(e)
}

// charge adds bytes and parts to the size of an element. If the memory is then full, it drops elements, perhaps this one.
func (m *Memory) charge(e *element, bytes int, parts []Part) {
	if !e.isStored() {
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

// hold adds a holder of a part. Only the first holder adds the part's size to the used bytes.
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
