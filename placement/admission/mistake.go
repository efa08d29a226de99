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

// Limits of messages, in bytes. CEL prints the line for each of its issues, and an expression may have 10 KiB in a line and 100
// issues.
const (
	maxValue  = 512
	maxDetail = 4096
)

// mistake is a misconfiguration together with the value that is wrong.
type mistake struct {
	*placement.Misconfiguration
	// value is the wrong value, with a type of decoded JSON. It is nil if the field is absent.
	value any
	// known is false if the value could not be looked up.
	known bool
}

// identity identifies a mistake in two versions of a Placement. The path has no indexes, because list elements may move.
type identity struct{ path, value string }

var index = regexp.MustCompile(`\[\d+\]`)

// mistakes returns the misconfigurations of a Placement.
func (c *Checker) mistakes(ctx context.Context, object *clusterv1beta1.Placement) ([]mistake, error) {
	if object == nil {
		return nil, nil
	}
	all, err := c.scheduler.Validate(ctx, object)
	var result []mistake
	var content map[string]any
	for i, one := range all {
		if i == 0 {
			// An object that can't be converted doesn't come from an API server. Its values are not shown.
			content, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		}
		value, known := lookup(content, one.Path.String())
		result = append(result, mistake{one, value, known})
	}
	return result, err
}

// element matches a step of a field.Path: an index or key in brackets, or a field.
var element = regexp.MustCompile(`\[([^\]]*)\]|([^.\[]+)`)

// lookup returns the value at a path, or nil if the path is absent. known is false if content is nil or an index is invalid.
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

// fieldError returns the error for the answer of the API server.
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

// line returns the mistake without line breaks, because warnings travel in HTTP headers. It has the first issue of an expression
// only.
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
