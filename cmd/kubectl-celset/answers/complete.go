// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/clusterstate"
)

// maxOptions is the maximum number of completions.
const maxOptions = 200

// complete answers the question [Complete]. The document around the position is usually incomplete, so it is read line by line,
// and not parsed.
func (a *Answers) complete(ctx context.Context, question CompleteQuestion) (*CompleteAnswer, error) {
	if len(question.Documents) > MaxDocuments {
		return nil, fmt.Errorf("documents: %d bytes, but the limit is %d: remove objects that are not needed", len(question.Documents), MaxDocuments)
	}
	offset := byteOffset(question.Documents, question.Offset)
	at := cursorIn(question.Documents, offset)
	known, err := a.knownNames(ctx, question)
	if err != nil {
		return nil, err
	}
	var options []Completion
	word := at.value
	switch {
	case at.inExpression():
		word, options = expressionOptions(at, known)
	case at.hasKey:
		word = strings.TrimLeft(at.value, `"'`)
		options = valueOptions(at, known)
	default:
		options = fieldOptions(at)
	}
	prefix := strings.ToLower(word)
	options = slices.DeleteFunc(options, func(o Completion) bool {
		return !strings.HasPrefix(strings.ToLower(o.Label), prefix) || o.Label == word
	})
	slices.SortStableFunc(options, func(a, b Completion) int { return strings.Compare(a.Label, b.Label) })
	options = slices.CompactFunc(options, func(a, b Completion) bool { return a.Label == b.Label })
	return &CompleteAnswer{From: utf16Length(question.Documents[:offset]) - utf16Length(word), Options: append([]Completion{}, options[:min(len(options), maxOptions)]...)}, nil
}

func utf16Length(text string) (length int) {
	for _, r := range text {
		if length++; r > 0xffff {
			length++
		}
	}
	return length
}

// byteOffset returns the offset in bytes of an offset in UTF-16 units. An offset out of range becomes the nearest in range, and an
// offset within a character the end of the character.
func byteOffset(text string, units int) int {
	for i, r := range text {
		if units <= 0 {
			return i
		}
		if units--; r > 0xffff {
			units--
		}
	}
	return len(text)
}

// cursor is a position in a document.
type cursor struct {
	// path holds the keys around the position, with "[]" for items of lists. It ends with the key of the value at the position, if
	// hasKey is set. kinds maps the length of a path to the kind field of the mapping at this path.
	path   []string
	hasKey bool
	kinds  map[int]string
	// value is the text between the beginning of the value, or of the key, and the position.
	value string
}

// inExpression reports whether the position is in a CEL expression.
func (c *cursor) inExpression() bool {
	return c.hasKey && (c.path[len(c.path)-1] == "expression" || slices.Contains(c.path, "celExpressions"))
}

// scope is a key of the document that is open at a line, with the indentation of the key.
type scope struct {
	indent int
	key    string
}

// keyLine matches a line with a key, after its indentation.
var keyLine = regexp.MustCompile(`^("[^"]*"|'[^']*'|[\w.$/\-]+):(?:[ \t]+|$)`)

// cursorIn finds the position in the document that contains it.
func cursorIn(documents string, offset int) *cursor {
	before := documents[:offset]
	start := 0
	if i := strings.LastIndex(before, "\n---"); i >= 0 {
		start = i + 1
	}
	document := documents[start:]
	if end := strings.Index(documents[offset:], "\n---"); end >= 0 {
		document = documents[start : offset+end]
	}
	scan := &scanner{cursor: &cursor{kinds: map[int]string{}}, until: offset - start}
	scan.lines(document)
	return scan.cursor
}

// scanner reads a document line by line.
type scanner struct {
	*cursor
	until, at int
	scopes    []scope
	// block is the indentation of the key of the current block scalar, or -1. text is the text of the block so far.
	block int
	text  string
	found bool
	// indent is the indentation of the key at the position. least is the smallest indentation of the lines after the position.
	indent, least int
}

func (s *scanner) lines(document string) {
	s.block = -1
	for line := range strings.Lines(document) {
		start := s.at
		s.at += len(line)
		content := strings.TrimRight(line, "\r\n")
		isLast := !s.found && s.until <= start+len(content) && s.until >= start
		if isLast {
			content = content[:s.until-start]
		}
		if !s.found {
			s.line(content, isLast)
			s.found = isLast
			continue
		}
		// The kind may come after the position.
		s.after(content)
	}
	if !s.found {
		s.line("", true)
	}
}

// line reads a line before the position, or the line of the position up to the position.
func (s *scanner) line(content string, isLast bool) {
	indent := len(content) - len(strings.TrimLeft(content, " "))
	rest := content[indent:]
	if s.block >= 0 && (rest == "" || indent > s.block) {
		s.text += strings.TrimLeft(rest, " ") + "\n"
		if isLast && indent > s.block {
			s.hasKey, s.value = true, strings.TrimSuffix(s.text, "\n")
			s.path = s.keys()
			return
		}
		if !isLast {
			return
		}
	}
	s.block = -1
	if !isLast && (rest == "" || strings.HasPrefix(rest, "#") || strings.HasPrefix(rest, "---")) {
		return
	}
	for strings.HasPrefix(rest, "- ") {
		s.close(indent, true)
		s.scopes = append(s.scopes, scope{indent, "[]"})
		next := strings.TrimLeft(rest[1:], " ")
		indent, rest = indent+len(rest)-len(next), next
	}
	s.close(indent, false)
	if isLast {
		s.indent, s.least = indent, indent
	}
	found := keyLine.FindStringSubmatch(rest)
	if found == nil {
		if isLast {
			s.path, s.value = s.keys(), strings.TrimLeft(rest, "-")
		}
		return
	}
	key, value := strings.Trim(found[1], `"'`), rest[len(found[0]):]
	s.scopes = append(s.scopes, scope{indent, key})
	if key == "kind" {
		s.kinds[len(s.scopes)-1] = strings.TrimSpace(value)
	} else if len(s.scopes) > 0 && s.kinds[len(s.scopes)] != "" {
		delete(s.kinds, len(s.scopes))
	}
	if isLast {
		s.hasKey, s.path, s.value = true, s.keys(), value
		return
	}
	if strings.HasPrefix(value, "|") || strings.HasPrefix(value, ">") {
		s.block, s.text = indent, ""
	}
}

// after reads a line after the position: it may have the kind of an object around the position. A mapping ends at the first line
// with a smaller indentation.
func (s *scanner) after(content string) {
	indent := len(content) - len(strings.TrimLeft(content, " "))
	if rest := content[indent:]; rest == "" || rest[0] == '#' {
		return
	}
	s.least = min(s.least, indent)
	found := keyLine.FindStringSubmatch(content[indent:])
	if found == nil || found[1] != "kind" || indent > s.least {
		return
	}
	depth := slices.IndexFunc(s.scopes, func(open scope) bool { return open.indent == indent && open.key != "[]" })
	if depth < 0 && indent == s.indent {
		depth = len(s.scopes) // the position is at the beginning of the mapping
	}
	if depth >= 0 && s.kinds[depth] == "" {
		s.kinds[depth] = strings.TrimSpace(content[indent+len(found[0]):])
	}
}

// close removes the scopes that end before a key, or a list item, with this indentation. An item may have the same indentation
// as the key of its list.
func (s *scanner) close(indent int, isItem bool) {
	for len(s.scopes) > 0 {
		last := s.scopes[len(s.scopes)-1]
		if last.indent < indent || isItem && last.indent == indent && last.key != "[]" {
			return
		}
		s.scopes = s.scopes[:len(s.scopes)-1]
	}
}

func (s *scanner) keys() []string {
	keys := make([]string, len(s.scopes))
	for i, open := range s.scopes {
		keys[i] = open.key
	}
	return keys
}

// names are the names that documents can use.
type names struct {
	slices                             []*resourceapi.ResourceSlice
	classes, templates, claims, others []string
}

// maxScanned is the maximum length of documents whose names are completed, because they are decoded for each completion.
const maxScanned = 128 << 10

// knownNames returns the names of the objects of the source or of the machine, and of the documents.
func (a *Answers) knownNames(ctx context.Context, question CompleteQuestion) (*names, error) {
	objects := &clusterstate.Objects{}
	if question.Machine != "" {
		var err error
		if objects, err = machineObjects(ctx, question.Machine, 1, 0); err != nil {
			return nil, err
		}
	} else {
		current, err := a.current(ctx)
		if err != nil {
			return nil, err
		}
		*objects = current.state.Objects
	}
	if len(question.Documents) <= maxScanned {
		documents, _ := clusterstate.Decode("documents", []byte(question.Documents))
		inDocuments := &clusterstate.Objects{}
		for _, document := range documents {
			// A document with mistakes has no names to complete.
			_ = inDocuments.Add(document, a.Namespace)
		}
		objects = objects.Overlay(inDocuments)
	}
	known := &names{slices: objects.Slices[:min(len(objects.Slices), maxSlices)]}
	for _, class := range objects.Classes {
		known.classes = append(known.classes, class.Name)
	}
	for _, template := range objects.Templates {
		known.templates = append(known.templates, template.Name)
	}
	for _, claim := range objects.Claims {
		known.claims = append(known.claims, claim.Name)
	}
	known.others = definedIn(question.Documents)
	return known, nil
}

// maxSlices is the maximum number of slices whose attributes are completed.
const maxSlices = 64

// definition matches the name of a definition: the kind and the name are on consecutive lines, in any order.
var definition = regexp.MustCompile(`(?m)^\s*(?:kind: CELDeviceConstraint\s*\n\s*name: (\S+)|name: (\S+)\s*\n\s*kind: CELDeviceConstraint\b)`)

// definedIn returns the names that constraints of the documents can refer to.
func definedIn(documents string) (defined []string) {
	for _, match := range definition.FindAllStringSubmatch(documents, maxOptions) {
		defined = append(defined, match[1]+match[2])
	}
	return defined
}

// lastWord returns the identifier at the end of a text.
func lastWord(text string) string {
	start := len(text)
	for start > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:start])
		if !(r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			break
		}
		start -= size
	}
	return text[start:]
}
