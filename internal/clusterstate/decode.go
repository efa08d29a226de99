// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// MaxDecoded is the maximum number of objects that [Decode] returns. The items of lists count, too.
const MaxDecoded = 20_000

// SyntaxError is a mistake in the syntax of a document.
type SyntaxError struct {
	Source string
	// Line is the line of the mistake in the text, or the first line of the document. It is 0 if the line is unknown.
	Line int
	// Err is the error of the YAML parser, without a line.
	Err error
}

// Error returns the source, the line and the mistake.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Source, e.Err)
	}
	return fmt.Sprintf("%s: line %d: %v", e.Source, e.Line, e.Err)
}

// Unwrap returns the error of the parser.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Decode decodes a text with YAML or JSON documents. The items of a list become separate documents with the line of the list.
// If documents have mistakes, Decode returns the other documents, and joins an error for each mistake: a *[SyntaxError].
func Decode(source string, text []byte) ([]Document, error) {
	var documents []Document
	var mistakes []error
	for _, part := range split(text) {
		decoded, err := part.decode(source)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		if documents = append(documents, decoded...); len(documents) > MaxDecoded {
			mistakes = append(mistakes, &SyntaxError{source, part.line, fmt.Errorf("more than %d objects, the limit: remove objects that are not needed", MaxDecoded)})
			return documents[:MaxDecoded], errors.Join(mistakes...)
		}
	}
	return documents, errors.Join(mistakes...)
}

// part is a YAML document of a text.
type part struct {
	text []byte
	// line is the first line of the document in the text, counted from 1.
	line int
}

// split splits a text at lines that begin with "---", and omits documents without content. As in kubectl, a comment after the
// separator belongs to no document.
func split(text []byte) []part {
	var parts []part
	current, line := part{line: 1}, 0
	for each := range bytes.Lines(text) {
		line++
		if bytes.HasPrefix(each, []byte("---")) {
			parts, current = append(parts, current), part{line: line + 1}
			continue
		}
		current.text = append(current.text, each...)
	}
	parts = append(parts, current)
	kept := parts[:0]
	for _, p := range parts {
		if !isBlank(p.text) {
			kept = append(kept, p)
		}
	}
	return kept
}

// isBlank reports whether a document has only comments and white space.
func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

func (p *part) decode(source string) ([]Document, error) {
	raw, err := yaml.YAMLToJSONStrict(p.text)
	if err != nil {
		return nil, p.syntaxError(source, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, &SyntaxError{source, p.line, fmt.Errorf("a document must be an object with apiVersion and kind: %w", err)}
	}
	document := Document{Source: source, Object: object, Position: Position{Text: p.text, Line: p.line}}
	if !object.IsList() {
		return []Document{document}, nil
	}
	var documents []Document
	err = object.EachListItem(func(item runtime.Object) error {
		if of, ok := item.(*unstructured.Unstructured); ok {
			document.Object, document.Item = of, len(documents)
			document.IsItem = true
			documents = append(documents, document)
		}
		return nil
	})
	if err != nil {
		return nil, &SyntaxError{source, p.line, err}
	}
	return documents, nil
}

// atLine finds the line in a message of the YAML parser.
var atLine = regexp.MustCompile(`line (\d+): `)

// syntaxError returns an error of the YAML parser with its line in the text.
func (p *part) syntaxError(source string, err error) *SyntaxError {
	message, line := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), p.line
	if found := atLine.FindStringSubmatchIndex(message); found != nil {
		if number, err := strconv.Atoi(message[found[2]:found[3]]); err == nil && number > 0 {
			line = p.line + number - 1
		}
		message = strings.TrimPrefix(message[:found[0]], "yaml: unmarshal errors:\n  ") + message[found[1]:]
	}
	// The parser counts the lines of further mistakes from the beginning of the document.
	message = atLine.ReplaceAllStringFunc(message, func(text string) string {
		number, err := strconv.Atoi(atLine.FindStringSubmatch(text)[1])
		if err != nil {
			return text
		}
		return fmt.Sprintf("line %d: ", p.line+number-1)
	})
	return &SyntaxError{source, line, errors.New(strings.TrimSpace(message))}
}
