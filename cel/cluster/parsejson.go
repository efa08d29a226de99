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

// Parsed texts are cached, because many clusters of a fleet describe their machines with the same text, which rarely changes. A
// call is charged for parsing even if the text is cached. Otherwise an evaluation that exceeds its limit could succeed the next
// time. Invalid texts are not cached, because their errors hold the position of the call.

const (
	// parsedBytes is the maximum memory of all cached texts and values in a process.
	parsedBytes = 16 << 20
	// valueBytes is the approximate memory of a value and its slot in a list or a map.
	valueBytes = 48
	// containerBytes is the approximate additional memory of a list or a map.
	containerBytes = 320
)

var parsedMemory = memo.New(parsedBytes)

var parsed = memo.In[string, parsedText](parsedMemory, func(text string, value *parsedText) memo.Size {
	return memo.Size{Bytes: len(text) + value.bytes}
})

// parsedText is the parsed value of a text. It must not be modified, because evaluations share it.
type parsedText struct {
	value ref.Val
	// construction is the CEL cost of creating the maps and lists in the value.
	construction uint64
	bytes        int
}

// parsedObject has the fields of a parsed JSON object.
type parsedObject struct {
	untyped
	construction uint64
}

// parseJSON parses a JSON text as Kubernetes does. A number becomes an int64 if it fits and has no fraction or exponent, and a
// float64 otherwise.
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
	// Clone the text. Otherwise the cache would keep the whole object that contains the text in memory.
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

// bytesOf returns the approximate memory of a value.
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
