// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/placement"
)

// These are the maximum lengths of texts in messages, in bytes. CEL may report 100 issues for an expression, each with a copy
// of the source line, and a line may have 10 KiB.
const (
	maxValue  = 512
	maxDetail = 4096
)

// mistake is a misconfiguration together with the wrong value.
type mistake struct {
	*placement.Misconfiguration
	// value is the wrong value as decoded from JSON. It is nil if the field is absent.
	value any
	// known is true if value was looked up successfully.
	known bool
}

// identity is equal for the same mistake in two versions of a Placement. Its path has no indexes, because list elements may
// move.
type identity struct{ path, value string }

var index = regexp.MustCompile(`\[\d+\]`)

// mistakes returns the misconfigurations of a Placement with the wrong values.
func (c *Checker) mistakes(ctx context.Context, object *clusterv1beta1.Placement) ([]mistake, error) {
	if object == nil {
		return nil, nil
	}
	all, err := c.scheduler.Validate(ctx, object)
	var result []mistake
	var content map[string]any
	for i, one := range all {
		if i == 0 {
			// An object that can't be converted doesn't come from an API server. Messages then leave out its values.
			content, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		}
		value, known := lookup(content, one.Path.String())
		result = append(result, mistake{one, value, known})
	}
	return result, err
}

// element matches one element of the text of a field.Path: an index or key in brackets, or the name of a field.
var element = regexp.MustCompile(`\[([^\]]*)\]|([^.\[]+)`)

// lookup returns the value at a path, or nil if nothing is there. known is false if content is nil or an index is invalid.
func lookup(content map[string]any, path string) (value any, known bool) {
	value = content
	for _, step := range element.FindAllStringSubmatch(path, -1) {
		switch container := value.(type) {
		case map[string]any:
			value = container[step[1]+step[2]]
		case []any:
			i, err := strconv.Atoi(step[1])
			if err != nil || i < 0 || i >= len(container) {
				return nil, false
			}
			value = container[i]
		default:
			return nil, content != nil
		}
	}
	return value, content != nil
}

func (m mistake) identity() identity {
	value, err := json.Marshal(m.value)
	if err != nil || !m.known {
		value = []byte(m.Err.Error())
	}
	return identity{index.ReplaceAllString(m.Path.String(), "[]"), string(value)}
}

// fieldError returns the mistake as an error about a field. The API server shows it to the user.
func (m mistake) fieldError() *field.Error {
	detail := cut(m.Err.Error(), maxDetail)
	switch value := m.value.(type) {
	case nil:
		if m.known {
			return field.Required(m.Path, detail)
		}
	case string:
		return field.Invalid(m.Path, cut(value, maxValue), detail)
	case int64, float64, bool:
		return field.Invalid(m.Path, value, detail)
	}
	return field.Invalid(m.Path, field.OmitValueType{}, detail)
}

// line returns the mistake as one line, because HTTP headers transport warnings. If an expression has several issues, the line
// has only the first.
func (m mistake) line() string {
	text := m.Err.Error()
	var failure *cel.Error
	if errors.As(m.Err, &failure) {
		text = failure.Message
		if failure.Line > 0 {
			text = fmt.Sprintf("line %d, column %d: %s", failure.Line, failure.Column, text)
		}
	}
	return cut(printable(m.Path.String()+": "+text), maxValue)
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// cut shortens a text to at most length bytes.
func cut(text string, length int) string {
	const ellipsis = "…"
	if len(text) <= length {
		return text
	}
	end := length - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
