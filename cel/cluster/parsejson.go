// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"unsafe"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/celset/celset/cel/memo"
)

const parseJSONFunction = "parseJSON"

// What a text says is kept: the clusters of a fleet say the same of their machines, and a
// cluster says the same as long as it does not change. A call is charged with what it takes
// to read the text, also if what it says is kept: else an evaluation that fails would succeed
// the next time. Texts that are not JSON are read anew; their errors get the place of the call.

const (
	// parsedBytes is the bound for all texts of a process and what they say.
	parsedBytes = 16 << 20
	// valueBytes is about what a value takes, with its place in a list or a map.
	valueBytes = 48
	// containerBytes is about what a list or a map takes more.
	containerBytes = 320
)

var parsedMemory = memo.New(parsedBytes)

var parsed = memo.In[string, parsedText](parsedMemory, func(text string, value *parsedText) memo.Size {
	return memo.Size{Bytes: len(text) + value.bytes}
})

// parsedText is what a text says. It is never modified.
type parsedText struct {
	value ref.Val
	// construction is the cost of its maps and lists.
	construction uint64
	bytes        int
}

// parsedObject are the fields of a text that is a JSON object.
type parsedObject struct {
	untyped
	construction uint64
}

// parseJSON reads JSON as Kubernetes does: a number without fraction and exponent
// that fits is an int64, others are float64.
func parseJSON(argument ref.Val) ref.Val {
	text, ok := argument.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(argument)
	}
	if known := parsed.Has(string(text)); known != nil {
		if found := known.Look(); found != nil {
			return found.value
		}
	}
	found, err := parseText(string(text))
	if err != nil {
		return types.NewErr("parseJSON: the text is not JSON: %v", err)
	}
	// What many evaluations keep must not hold an object of the hub that has the text in it.
	parsed.Get(strings.Clone(string(text)), func() parsedText { return found })
	return found.value
}

func parseText(text string) (parsedText, error) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return parsedText{}, err
	}
	result := parsedText{value: untypedValue(value), construction: containers(value), bytes: bytesOf(value)}
	if object, ok := value.(map[string]any); ok {
		result.value = &mapping[parsedObject]{parsedObject{object, result.construction}}
	}
	return result, nil
}

// bytesOf is about what a value takes.
func bytesOf(value any) int {
	result := valueBytes
	switch value := value.(type) {
	case string:
		result += len(value)
	case map[string]any:
		result += containerBytes
		for key, element := range value {
			result += int(unsafe.Sizeof(key)) + len(key) + bytesOf(element)
		}
	case []any:
		result += containerBytes
		for _, element := range value {
			result += bytesOf(element)
		}
	}
	return result
}
