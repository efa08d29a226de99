// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/celset/celset/internal/yamlpath"
)

// update writes new expectations into the file. changed maps the index of a case to its new expectations. The steps for each
// case, from the last to the first:
//
//  1. Change the nodes of the field expect. Comments are parts of the nodes.
//  2. Encode the field alone.
//  3. Replace the text of the field in the file. All other text stays as it is.
//
// The new text must decode to the same test with the new expectations. Otherwise, the file is not written.
func (s *source) update(changed map[int]*Expectations) error {
	content := s.content
	if !bytes.HasSuffix(content, []byte("\n")) {
		content = append(slices.Clone(content), '\n')
	}
	wanted := s.test
	wanted.Cases = slices.Clone(wanted.Cases)
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(changed))) {
		_, cases := yamlpath.Child(s.root, "cases")
		_, of := yamlpath.Child(cases, fmt.Sprint(i))
		var err error
		if content, err = s.replaced(content, of, &wanted.Cases[i].Expect, changed[i]); err != nil {
			return fmt.Errorf("case %q: %w", wanted.Cases[i].Name, err)
		}
		wanted.Cases[i].Expect = *changed[i]
	}
	if lines := bytes.Count(s.content, []byte("\n")); lines > 0 && bytes.Count(s.content, []byte("\r\n")) == lines {
		content = bytes.ReplaceAll(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	again := &source{path: s.path, content: content}
	if mistakes := again.decode(); len(mistakes) > 0 || !isSame(&again.test, &wanted) {
		return errors.New("can't change the text of the field expect: write it in block style without aliases")
	}
	return replaceFile(s.path, content)
}

// replaceFile writes the content to another file and gives that file the name, so that an interruption leaves the old content or
// the new content. A symbolic link stays, and its target is replaced.
func replaceFile(path string, content []byte) (err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	// The file must be writable itself, although only its directory changes.
	old, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := old.Stat()
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file: copy it to a file", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".celset-test-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(info.Mode().Perm()), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func isSame(a, b *ExpressionTest) bool {
	one, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && bytes.Equal(one, other)
}

// replaced returns the content with new expectations of a case. The positions of the nodes must be right up to this case.
func (s *source) replaced(content []byte, of *yaml.Node, from, to *Expectations) ([]byte, error) {
	if of == nil || of.Kind != yaml.MappingNode {
		return nil, errors.New("the case is an alias")
	}
	key, expect := yamlpath.Child(of, "expect")
	isNew := key == nil || expect.Kind == yaml.ScalarNode && expect.Value == ""
	if isNew {
		expect = &yaml.Node{Kind: yaml.MappingNode}
	}
	if expect.Kind != yaml.MappingNode {
		return nil, errors.New("expect: the field is an alias or a scalar")
	}
	if err := change(expect, from, to); err != nil {
		return nil, err
	}
	isFlow := expect.Style&yaml.FlowStyle != 0
	var begin, end int
	var text string
	var err error
	switch {
	case isNew && of.Style&yaml.FlowStyle != 0:
		return nil, errors.New("the case is written in flow style, in braces: write it in block style")
	case isNew && key != nil:
		begin = offset(content, key.Line, key.Column) + len("expect:")
		end = begin
		text, err = encoded(expect, of.Column+1)
		text = "\n" + strings.Repeat(" ", of.Column+1) + strings.TrimRight(text, "\n")
	case isNew:
		begin = s.endOf(content, of)
		end = begin
		text, err = encoded(expect, of.Column+1)
		text = strings.Repeat(" ", of.Column-1) + "expect:\n" + strings.Repeat(" ", of.Column+1) + text
	case isFlow:
		begin = offset(content, expect.Line, expect.Column)
		end = endOfFlow(content, begin)
		text, err = encoded(expect, 0)
		text = strings.TrimSpace(text)
	default:
		begin, end = offset(content, expect.Line, expect.Column), s.endOf(content, expect)
		clearFoot(expect)
		if len(expect.Content) > 0 {
			expect.Content[0].HeadComment = "" // the comment stays in the file
		}
		text, err = encoded(expect, expect.Column-1)
	}
	if err != nil {
		return nil, err
	}
	return slices.Concat(content[:begin], []byte(text), content[end:]), nil
}

// change sets the fields of a mapping that differ between two values.
func change(expect *yaml.Node, from, to *Expectations) error {
	before, after, err := fieldsOf(from, to)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; stays {
			continue
		}
		at := slices.IndexFunc(expect.Content, func(n *yaml.Node) bool { return n.Value == name })
		if at < 0 {
			return fmt.Errorf("expect.%s: the field comes from an alias", name)
		}
		expect.Content = slices.Delete(expect.Content, at, at+2)
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if bytes.Equal(before[name], after[name]) {
			continue
		}
		var decoded any
		if err := json.Unmarshal(after[name], &decoded); err != nil {
			return err
		}
		value := &yaml.Node{}
		if err := value.Encode(decoded); err != nil {
			return err
		}
		inFlow(value)
		_, old := yamlpath.Child(expect, name)
		if old == nil {
			expect.Content = append(expect.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
			continue
		}
		value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
		*old = *value
	}
	return nil
}

func fieldsOf(from, to *Expectations) (before, after map[string]json.RawMessage, err error) {
	for _, one := range []struct {
		of   *Expectations
		into *map[string]json.RawMessage
	}{{from, &before}, {to, &after}} {
		raw, err := json.Marshal(one.of)
		if err == nil {
			err = json.Unmarshal(raw, one.into)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return before, after, nil
}

// inFlow writes lists, and mappings of scalars, on one line.
func inFlow(node *yaml.Node) {
	isFlow := node.Kind == yaml.SequenceNode
	for _, of := range node.Content {
		inFlow(of)
		isFlow = isFlow || of.Kind == yaml.ScalarNode && node.Kind == yaml.MappingNode && len(node.Content) == 2 && node.Content[1].Kind == yaml.ScalarNode
	}
	if isFlow {
		node.Style |= yaml.FlowStyle
	}
}

// encoded returns the text of a node. All lines except for the first are indented.
func encoded(node *yaml.Node, indent int) (string, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return "", err
	}
	lines := strings.SplitAfter(b.String(), "\n")
	for i := range lines {
		if i > 0 && strings.TrimSpace(lines[i]) != "" {
			lines[i] = strings.Repeat(" ", indent) + lines[i]
		}
	}
	return strings.Join(lines, ""), nil
}

// clearFoot removes the comments after the last value, because they stay in the file.
func clearFoot(node *yaml.Node) {
	node.FootComment = ""
	for i := max(0, len(node.Content)-2); i < len(node.Content); i++ {
		clearFoot(node.Content[i])
	}
}

// offset returns the offset of a position. Lines and columns are counted from 1, columns in characters.
func offset(content []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(content[at:], '\n')
		if next < 0 {
			return len(content)
		}
		at += next + 1
	}
	for ; column > 1 && at < len(content); column-- {
		_, size := utf8.DecodeRune(content[at:])
		at += size
	}
	return at
}

// endOf returns the offset of the line after a node in block style. Blank lines and comments after the node do not belong to it.
func (s *source) endOf(content []byte, node *yaml.Node) int {
	end := len(content)
	if next := after(s.root, node); next != nil {
		end = offset(content, next.Line, 1)
	}
	for end > 0 {
		begin := bytes.LastIndexByte(content[:end-1], '\n') + 1
		line := bytes.TrimSpace(content[begin:end])
		if len(line) > 0 && line[0] != '#' {
			break
		}
		end = begin
	}
	return end
}

// after returns the first node that comes after all nodes of a mapping, or nil.
func after(root, node *yaml.Node) *yaml.Node {
	var found *yaml.Node
	isPast := false
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		switch {
		case found != nil:
		case n == node:
			isPast = true
		case isPast:
			found = n
		default:
			for _, of := range n.Content {
				walk(of)
			}
		}
	}
	walk(root)
	return found
}

// endOfFlow returns the offset after the bracket that closes the bracket at begin.
func endOfFlow(content []byte, begin int) int {
	depth, quote := 0, byte(0)
	for i := begin; i < len(content); i++ {
		c := content[i]
		isStart := i > 0 && bytes.IndexByte([]byte(" \t\n[{,:"), content[i-1]) >= 0
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && isStart:
			quote = c
		case c == '#' && isStart:
			for i < len(content) && content[i] != '\n' {
				i++
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(content)
}
