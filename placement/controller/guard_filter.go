// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"io"
)

// filter replaces values in JSON while it is read: those for which the shape of what
// is read has something that accepts them. It looks at the text only as far as it must to
// find these, and keeps back no more than one of them: events of a watch arrive when they
// come. What is no JSON passes.
type filter struct {
	body io.ReadCloser
	root *shape
	// in is what was read, out what may be handed out, from a place on, and err what the
	// body ended with.
	in   [16 << 10]byte
	out  []byte
	from int
	err  error

	// within are the objects and lists around the place, from the outside in, as long as
	// they have a shape, and beyond counts those further in.
	within []*shape
	beyond int
	// next is the shape of the value that follows.
	next *shape
	// quoted tells that the place is in a text, escaped that it is after a backslash.
	quoted, escaped bool
	// name is the last text in an object of which the fields have shapes.
	name   []byte
	naming bool
	// value is the one that is kept back, cut where it is too long to be one.
	value   []byte
	keeping bool
}

// maxName is how long names of fields are that have a shape.
const maxName = 64

func newFilter(body io.ReadCloser, root *shape) *filter {
	return &filter{body: body, root: root, next: root}
}

// Read hands out what has been looked at.
func (f *filter) Read(p []byte) (int, error) {
	for f.from == len(f.out) {
		if f.err != nil {
			return 0, f.err
		}
		n, err := f.body.Read(f.in[:])
		f.out, f.from = f.out[:0], 0
		f.look(f.in[:n])
		if f.err = err; err != nil && f.keeping {
			// What is cut off is decoded by nobody.
			f.settle()
		}
	}
	n := copy(p, f.out[f.from:])
	f.from += n
	return n, nil
}

// Close closes the body.
func (f *filter) Close() error { return f.body.Close() }

func (f *filter) look(in []byte) {
	for len(in) > 0 {
		n := 0
		switch {
		case f.quoted:
			n = f.inText(in)
		case f.keeping:
			n = f.inLiteral(in)
		default:
			n = f.between(in)
		}
		in = in[n:]
	}
}

// inText takes as much as there is of a text, and returns how much that is.
func (f *filter) inText(in []byte) int {
	if f.escaped {
		f.escaped = false
		f.pass(in[:1])
		return 1
	}
	n := bytes.IndexByte(in, '"')
	ends := n >= 0
	if !ends {
		n = len(in)
	}
	if escape := bytes.IndexByte(in[:n], '\\'); escape >= 0 {
		f.escaped = true
		f.pass(in[:escape+1])
		return escape + 1
	}
	if !ends {
		f.pass(in)
		return n
	}
	f.quoted = false
	if f.keeping {
		f.pass(in[:n+1])
		f.settle()
		return n + 1
	}
	f.pass(in[:n])
	f.naming = false
	f.pass(in[n : n+1])
	return n + 1
}

// inLiteral takes as much as there is of a number, or of a word such as null.
func (f *filter) inLiteral(in []byte) int {
	for i, b := range in {
		switch b {
		case ',', ':', '{', '}', '[', ']', '"', ' ', '\t', '\r', '\n':
			f.pass(in[:i])
			f.settle()
			return i
		}
	}
	f.pass(in)
	return len(in)
}

// between takes what is up to the next text, and up to a value that is to be accepted.
func (f *filter) between(in []byte) int {
	for i, b := range in {
		switch b {
		case '{', '[':
			f.open(b == '[')
		case '}', ']':
			f.close()
		case ',', ':':
			f.follow(b == ':')
		case ' ', '\t', '\r', '\n':
		default:
			wanted := f.next != nil && f.next.accept != nil
			if b != '"' && !wanted {
				continue
			}
			f.pass(in[:i])
			f.keeping = wanted
			if b != '"' {
				return i
			}
			f.pass(in[i : i+1])
			f.quoted, f.name, f.naming = true, f.name[:0], !wanted && f.inFields()
			return i + 1
		}
	}
	f.pass(in)
	return len(in)
}

// pass hands out a part of the text, or keeps it back.
func (f *filter) pass(part []byte) {
	switch {
	case f.keeping:
		// A byte more than it may have is enough to see that it is none.
		f.value = append(f.value, part[:min(len(part), maxValue+1-len(f.value))]...)
		return
	case f.naming:
		f.name = append(f.name, part[:min(len(part), maxName+1-len(f.name))]...)
	}
	f.out = append(f.out, part...)
}

// settle hands out the value that was kept back, or what is in its place.
func (f *filter) settle() {
	f.out = append(f.out, f.next.accept(f.value)...)
	f.keeping, f.value, f.next = false, f.value[:0], nil
}

// inFields tells whether the place is in an object of which the fields have shapes.
func (f *filter) inFields() bool {
	return f.beyond == 0 && len(f.within) > 0 && f.within[len(f.within)-1].fields != nil
}

// open begins an object or a list.
func (f *filter) open(list bool) {
	of := f.next
	f.next = nil
	if f.beyond > 0 || of == nil || of.accept != nil || of.list != list {
		f.beyond++
		return
	}
	f.within = append(f.within, of)
	if list {
		f.next = of.elements
	}
}

// close ends one. What comes after the outermost one is the next event of a watch.
func (f *filter) close() {
	switch {
	case f.beyond > 0:
		f.beyond--
	case len(f.within) > 0:
		f.within = f.within[:len(f.within)-1]
	}
	f.next = nil
	if f.beyond == 0 && len(f.within) == 0 {
		f.next = f.root
	}
}

// follow comes to the next element of a list, or to the next name in an object or, behind
// a colon, to the value.
func (f *filter) follow(colon bool) {
	f.next = nil
	if f.beyond > 0 || len(f.within) == 0 {
		return
	}
	switch around := f.within[len(f.within)-1]; {
	case around.list:
		f.next = around.elements
	case colon && around.fields != nil:
		f.next = around.fields[string(f.name)]
	case colon:
		f.next = around.elements
	}
}
