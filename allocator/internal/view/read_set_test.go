// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// reading returns the read set with the given attributes of a driver.
func reading(ids ...string) ReadSet {
	var read ReadSet
	for _, id := range ids {
		read = read.With(ReadAttribute(resourceapi.FullyQualifiedName("mla.example.com/" + id)))
	}
	return read
}

// Read sets with the same attributes are equal, in any order of adding the attributes.
func TestReadSetsAreSets(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 6).Draw(t, "attributes")
		var f ReadSet
		for len(ids) > 0 {
			n := rapid.IntRange(1, len(ids)).Draw(t, "together")
			f = f.With(reading(ids[:n]...))
			if ids = ids[n:]; len(ids) == 0 {
				break
			}
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			read := strings.Contains(f.names, "mla.example.com/"+id+end)
			require.Equal(t, read, f.Reader("mla.example.com")(resourceapi.QualifiedName(id)))
			require.Equal(t, read, f.Reader("mla.example.com")(resourceapi.QualifiedName("mla.example.com/"+id)))
			require.Equal(t, read, f.Reader("other.example.com")(resourceapi.QualifiedName("mla.example.com/"+id)))
			require.False(t, f.Reader("other.example.com")(resourceapi.QualifiedName(id)))
			require.True(t, AnyAttribute.Reader("other.example.com")(resourceapi.QualifiedName(id)))
		}
		require.Equal(t, f, f.With(f))
		require.Equal(t, f, ReadSet{}.With(f))
		require.Equal(t, AnyAttribute, f.With(AnyAttribute))
		require.Equal(t, AnyAttribute, AnyAttribute.With(f))
		sorted := slices.Collect(strings.SplitAfterSeq(f.names, end))
		require.True(t, slices.IsSorted(sorted[:len(sorted)-1]))
		require.Equal(t, sorted, slices.Compact(slices.Clone(sorted)))
	})
}

// Expressions may read attributes with any name. Even the read set with an empty name must differ from AnyAttribute.
func TestFingerprintsDistinguishReadSets(t *testing.T) {
	seen := map[any]ReadSet{}
	for _, read := range []ReadSet{{}, AnyAttribute, ReadAttribute(""), ReadAttribute(end), reading("a"), reading("b"), reading("a", "b")} {
		require.NotContains(t, seen, read.Fingerprint(), "%+v", read)
		seen[read.Fingerprint()] = read
	}
}
