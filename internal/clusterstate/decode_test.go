// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/clusterstate"
)

func TestDecode(t *testing.T) {
	documents, err := clusterstate.Decode("text", []byte(`# a comment
---
apiVersion: v1
kind: Pod
metadata: {name: first}
---
kind: [
---
# only a comment
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: second}}
- {apiVersion: v1, kind: Node, metadata: {name: third}}
---
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fourth"}}
---
apiVersion: v1
kind: Node
kind: Pod
---
text
`))
	var found []string
	for _, document := range documents {
		found = append(found, fmt.Sprintf("%s %d %v %d", document.Object.GetName(), document.Line, document.IsItem, document.Item))
		require.Equal(t, "text", document.Source)
	}
	require.Equal(t, []string{"first 3 false 0", "second 11 true 0", "third 11 true 1", "fourth 17 false 0"}, found)
	var lines []int
	var messages []string
	for _, mistake := range err.(interface{ Unwrap() []error }).Unwrap() {
		syntax, ok := errors.AsType[*clusterstate.SyntaxError](mistake)
		require.True(t, ok)
		lines, messages = append(lines, syntax.Line), append(messages, syntax.Error())
	}
	require.Equal(t, []int{7, 21, 23}, lines)
	require.Contains(t, messages[0], "text: line 7: ")
	require.Contains(t, messages[1], `key "kind" already set in map`)
	require.Contains(t, messages[2], "a document must be an object with apiVersion and kind")
}

func TestDecodeIsBounded(t *testing.T) {
	text := strings.Repeat("{apiVersion: v1, kind: Node}\n---\n", clusterstate.MaxDecoded+1)
	documents, err := clusterstate.Decode("text", []byte(text))
	require.Len(t, documents, clusterstate.MaxDecoded)
	require.ErrorContains(t, err, "more than 20000 objects, the limit")
}

func TestDecodeNothing(t *testing.T) {
	for _, text := range []string{"", "---", "\n# x\n---\n\n"} {
		documents, err := clusterstate.Decode("text", []byte(text))
		require.NoError(t, err)
		require.Empty(t, documents)
	}
}
