// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// changing is a lister of a class that changes, or goes, after it was asked for some times.
type changing struct {
	classes
	left          atomic.Int64
	before, after *resourceapi.DeviceClass
}

func (c *changing) Get(name string) (*resourceapi.DeviceClass, error) {
	switch {
	case name != c.before.Name:
		return c.classes.Get(name)
	case c.left.Add(-1) >= 0:
		return c.before, nil
	case c.after == nil:
		return c.classes.Get(name)
	default:
		return c.after, nil
	}
}

func newChanging(before, after *resourceapi.DeviceClass, left int64) *changing {
	c := &changing{before: before, after: after}
	c.left.Store(left)
	return c
}

// A class that changes, and is changed back, leaves no answer behind that was never right:
// whenever it changes, an attempt sees one class, and what is kept of it is of that class.
func TestClassesThatChange(t *testing.T) {
	s := rowOfThree()
	before, after := classOf(driver), classOf(driver, index+" > 1")
	devices := map[*resourceapi.DeviceClass][]string{
		before: {"mla=mla-0", "mla=mla-1", "mla=mla-2"},
		after:  {"mla=mla-2", "mla=mla-3", "mla=mla-4"},
	}
	// ask asks for two nodes.
	ask := func(cache *Cache, lister *changing) [][]string {
		s.slices = []*sliceBuilder{slice("1", ring(6)...), slice("2", ring(6)...).onNode("node-2").pool("pool-2", 1, 1)}
		a := s.with(WithCache(cache)).allocator(t)
		a.classes.DeviceClassLister = lister
		var got [][]string
		for _, node := range []string{nodeName, "node-2"} {
			results, err := a.Allocate(t.Context(), newNode(node), s.apiClaims())
			require.NoError(t, err)
			got = append(got, devicesOf(results))
		}
		return got
	}
	for asked := range int64(12) {
		cache := NewCache()
		got := ask(cache, newChanging(before, after, asked))
		seen := before
		if asked == 0 {
			seen = after
		}
		require.Equal(t, [][]string{devices[seen], devices[seen]}, got, "changed after %d", asked)
		for _, class := range []*resourceapi.DeviceClass{before, after, before} {
			require.Equal(t, [][]string{devices[class], devices[class]}, ask(cache, newChanging(class, class, 0)), "changed after %d", asked)
		}
	}
}

func TestClassesThatGo(t *testing.T) {
	s := rowOfThree()
	for asked := range int64(6) {
		a := s.allocator(t)
		a.classes.DeviceClassLister = newChanging(classOf(driver), nil, asked)
		results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
		if asked == 0 {
			require.ErrorContains(t, err, driver)
			continue
		}
		require.NoError(t, err, "it was there when it was asked for first")
		require.Equal(t, []string{"mla=mla-0", "mla=mla-1", "mla=mla-2"}, devicesOf(results))
	}
}

// A class that is not there may come.
func TestClassesThatCome(t *testing.T) {
	lister := classes{}
	seen := &seenClasses{DeviceClassLister: lister}
	_, err := seen.Get("late")
	require.Error(t, err)
	late := classOf("late")
	lister["late"] = late
	got, err := seen.Get("late")
	require.NoError(t, err)
	require.Same(t, late, got)
	lister["late"] = classOf("late", "false")
	got, err = seen.Get("late")
	require.NoError(t, err)
	require.Same(t, late, got)
}
