// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

// Expressions that Open Cluster Management compiles, and that are not compiled here.
func TestLargeExpressionsDoNotCompile(t *testing.T) {
	for text, message := range map[string]string{
		strings.Repeat("1 < 2 || ", 2000) + "true":                                                      "more than 6000 parts after its macros are expanded",
		strings.Repeat("[1].all(x, ", 60) + "true" + strings.Repeat(")", 60):                            "nested more than 100 levels deep",
		strings.Repeat("[", 40) + strings.Repeat("]", 40) + " == []":                                    "a type has more than 32 names",
		"managedCluster.metadata.name.matches('(abcdefghijklmnopqrstuvwxyz){1000}')":                    "more than 20000 instructions",
		"managedCluster.metadata.name.matches(r'" + strings.Repeat(`\pL`, 100) + "')":                   "names 100 classes of characters, the limit is 64",
		"managedCluster.metadata.name.findAll('" + strings.Repeat("(a|b)*", 40) + "') == []":            "has 40 groups, the limit is 32: write (?:x) in place of (x)",
		"managedCluster.metadata.name.find('" + strings.Repeat("a", 17_000) + "') == ''":                "the regular expression has 17000 bytes, the limit is 16384",
		strings.Repeat("managedCluster.metadata.name == 'a' || ", 2000) + "managedCluster.spec == null": "more than 10240 words and signs",
		"managedCluster.metadata.name == '" + strings.Repeat("é", 11_000) + "'":                         "11000 characters that are not ASCII, more than 10240",
	} {
		_, err := environment.Compile(t.Context(), expressions(text), nil)
		require.Error(t, err, message)
		_ = requireError(t, err, cel.ReasonTooLong)
		require.ErrorContains(t, err, message)
	}
}

// What an evaluation makes is limited, whatever it costs.
func TestMemoryLimit(t *testing.T) {
	const text = `managedCluster.metadata.name.replace("", managedCluster.metadata.name).size() < 0`
	verdict, err := compile(t, expressions(text)).Match(t.Context(), named(4000), cluster.Hub{})
	require.False(t, verdict.Matches)
	_ = requireError(t, err, cel.ReasonMemory)
	require.ErrorContains(t, err, "exceeds the memory limit of 2097152 bytes with this call of replace")
	verdict, err = compile(t, expressions(text)).Match(t.Context(), named(100), cluster.Hub{})
	require.NoError(t, err)
	require.False(t, verdict.Matches)
}
