// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/yamlpath"
)

// place finds the positions of the fields of a document.
type place struct {
	document clusterstate.Position
	// root is the YAML node of the object. It is parsed when it is needed, and nil if that fails.
	root   *yaml.Node
	parsed bool
}

// of returns the line and column of a field in all documents. With a line and a column in the text of the field, which both
// count from 1, it returns the position of that character. If the object lacks the field, it returns the position of the
// innermost field on the path that the object has.
func (p *place) of(field string, line, column int) (inLine, inColumn int) {
	if p == nil {
		return 0, 0
	}
	p.parse()
	if p.root == nil {
		return p.document.Line, 1
	}
	key, value := yamlpath.Find(p.root, field)
	if line > 0 && value.Kind == yaml.ScalarNode {
		if at := p.within(value, line, column); at >= 0 {
			return p.position(at)
		}
	}
	if key != nil {
		value = key
	}
	return p.position(p.offset(value.Line, value.Column))
}

// parse parses the YAML of the document.
func (p *place) parse() {
	if p.parsed {
		return
	}
	p.parsed = true
	var document yaml.Node
	if yaml.Unmarshal(p.document.Text, &document) != nil || len(document.Content) != 1 {
		return
	}
	p.root = document.Content[0]
	if p.document.IsItem {
		if _, items := yamlpath.Find(p.root, fmt.Sprintf("items[%d]", p.document.Item)); items != nil {
			p.root = items
		}
	}
}

// ofType returns the position of the first field whose value has the wrong type. path has no indices. ok is false if
// there is no such field.
func (p *place) ofType(path, wrong string) (line, column int, ok bool) {
	if p == nil {
		return 0, 0, false
	}
	if p.parse(); p.root == nil {
		return 0, 0, false
	}
	key := firstOfType(nil, p.root, yamlpath.Steps(path), wrong)
	if key == nil {
		return 0, 0, false
	}
	line, column = p.position(p.offset(key.Line, key.Column))
	return line, column, true
}

// tagsOf maps the names of types in errors of the JSON decoder to the tags of YAML.
var tagsOf = map[string][]string{
	"string": {"!!str", "!!timestamp"}, "bool": {"!!bool"}, "number": {"!!int", "!!float"}, "object": {"!!map"}, "array": {"!!seq"},
}

func firstOfType(key, value *yaml.Node, path []string, wrong string) *yaml.Node {
	value = yamlpath.Resolve(value)
	isType := slices.Contains(tagsOf[wrong], value.ShortTag())
	if wrong == "bool" && value.Style == 0 && slices.Contains([]string{"y", "n", "yes", "no", "on", "off"}, strings.ToLower(value.Value)) {
		isType = true // in YAML 1.1, which the decoder of objects follows
	}
	if len(path) == 0 && isType {
		return cmp.Or(key, value)
	}
	if value.Kind == yaml.SequenceNode {
		for _, item := range value.Content {
			if found := firstOfType(nil, item, path, wrong); found != nil {
				return found
			}
		}
	}
	if len(path) == 0 || value.Kind != yaml.MappingNode {
		return nil
	}
	nextKey, next := yamlpath.Child(value, path[0])
	if next == nil {
		return nil
	}
	return firstOfType(nextKey, next, path[1:], wrong)
}

// offset returns the offset in the document's text of a line and a column that count from 1. The column counts characters.
func (p *place) offset(line, column int) int {
	at := 0
	for ; line > 1; line-- {
		end := bytes.IndexByte(p.document.Text[at:], '\n')
		if end < 0 {
			return len(p.document.Text)
		}
		at += end + 1
	}
	for ; column > 1 && at < len(p.document.Text) && p.document.Text[at] != '\n'; column-- {
		_, size := utf8.DecodeRune(p.document.Text[at:])
		at += size
	}
	return at
}

// position returns the line and the column in all documents of an offset in the document's text. The column counts UTF-16 units.
func (p *place) position(offset int) (line, column int) {
	before := string(p.document.Text[:min(offset, len(p.document.Text))])
	start := strings.LastIndexByte(before, '\n') + 1
	return p.document.Line + strings.Count(before, "\n"), len(utf16.Encode([]rune(before[start:]))) + 1
}

// within returns the offset of a character in the text of a scalar, or -1. The line and the column count from 1, and the column
// counts characters. A scalar can be a block, quoted, or plain, with several lines.
func (p *place) within(scalar *yaml.Node, line, column int) int {
	target := offsetIn(scalar.Value, line, column)
	at := p.offset(scalar.Line, scalar.Column)
	switch {
	case target < 0:
		return -1
	case scalar.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return p.inBlock(scalar, target)
	case scalar.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		at++
	}
	return align(string(p.document.Text), at, scalar.Value[:target], scalar.Style)
}

// inBlock returns the offset of a character in the text of a block, or -1. target is the offset in the text. Each line of the block
// that is not blank is a part of the text, without its indentation.
func (p *place) inBlock(scalar *yaml.Node, target int) int {
	// The text begins on the line after the indicator.
	at := p.offset(scalar.Line+1, 1)
	indent := indentation(string(p.document.Text[at:])) - indentation(scalar.Value)
	end := 0
	for line := range strings.Lines(string(p.document.Text[at:])) {
		content := strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(content) != "" {
			if indent < 0 || indentation(content) < indent {
				return -1
			}
			found := strings.Index(scalar.Value[end:], content[indent:])
			if found < 0 {
				return -1
			}
			begin := end + found
			if end = begin + len(content) - indent; target <= end {
				return at + indent + max(0, target-begin)
			}
		}
		at += len(line)
	}
	return -1
}

// offsetIn returns the offset of a character in a text, or -1.
func offsetIn(text string, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			return -1
		}
		at += end + 1
	}
	for ; column > 1 && at < len(text); column-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// indentation returns the number of spaces before the first text of a block.
func indentation(block string) int {
	for line := range strings.Lines(block) {
		if text := strings.TrimLeft(line, " "); strings.TrimSpace(text) != "" {
			return len(line) - len(text)
		}
	}
	return 0
}

// align returns the offset in the raw form of a scalar where the given beginning of the scalar's text ends, or -1. at is the
// offset of the scalar's first character.
func align(raw string, at int, text string, style yaml.Style) int {
	for i := 0; i < len(text); {
		if at >= len(raw) {
			return -1
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		isEscape := style&yaml.DoubleQuotedStyle != 0 && raw[at] == '\\'
		switch {
		case (r == '\n' || r == ' ') && !isEscape && skipSpace(raw, at) > skipBlanks(raw, at):
			// A line break of the raw form is a space in the text. With blank lines, it is a line break for each blank line.
			end := skipSpace(raw, at)
			i += max(0, strings.Count(raw[at:end], "\n")-2)
			at = end
		case isEscape && isContinued(raw, at):
			at, size = skipSpace(raw, at+1), 0
		case isEscape:
			at += escapeLength(raw[at:])
		case style&yaml.SingleQuotedStyle != 0 && r == '\'':
			at += 2
		default:
			at += size
		}
		i += size
	}
	if style&yaml.DoubleQuotedStyle != 0 && isContinued(raw, at) {
		at = skipSpace(raw, at+1)
	}
	if at > len(raw) {
		return -1
	}
	return at
}

// isContinued reports whether there is a backslash at the end of a line. In a text in double quotes, the next line without its
// indentation continues the text.
func isContinued(raw string, at int) bool {
	return at < len(raw) && raw[at] == '\\' && (strings.HasPrefix(raw[at+1:], "\n") || strings.HasPrefix(raw[at+1:], "\r\n"))
}

// skipBlanks returns the offset of the next character that is neither a space nor a tab. skipSpace also skips line breaks.
func skipBlanks(raw string, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\t') {
		at++
	}
	return at
}

func skipSpace(raw string, at int) int {
	for at < len(raw) && strings.IndexByte(" \t\r\n", raw[at]) >= 0 {
		at++
	}
	return at
}

// escapeLength returns the length of an escape sequence in a text in double quotes.
func escapeLength(raw string) int {
	if len(raw) < 2 {
		return 1
	}
	switch raw[1] {
	case 'x':
		return 4
	case 'u':
		return 6
	case 'U':
		return 10
	default:
		return 2
	}
}
