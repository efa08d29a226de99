// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/corpus"
)

// corpusFleet has nodes of one kind, and claims with expressions for it.
func corpusFleet(t *rapid.T) *fleet {
	all := corpus.Expressions()
	f := newFleet(rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "cycles"))
	f.listAttributes = oneIn(t, 2, "list attributes")
	main := rapid.SampledFrom(all).Draw(t, "expression")
	for _, driver := range main.Hardware.Drivers() {
		f.classes[driver] = classOf(driver, "device.driver == '"+driver+"'")
	}
	for range rapid.SampledFrom([]int{2, 4, 6, 8}).Draw(t, "nodes") {
		addCorpusNode(t, f, main.Hardware)
	}
	for range rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "pods") {
		f.addPod(corpusClaim(t, main, all))
	}
	return f
}

// addCorpusNode adds a node of that kind. Now and then a device lacks an attribute or
// there are fewer devices.
func addCorpusNode(t *rapid.T, f *fleet, hardware corpus.Hardware) {
	byDriver := map[string][]resourceapi.Device{}
	for _, d := range hardware.Devices() {
		if oneIn(t, 30, "left out") {
			continue
		}
		if len(d.Attributes) > 0 && oneIn(t, 60, "without an attribute") {
			delete(d.Attributes, rapid.SampledFrom(slices.Sorted(maps.Keys(d.Attributes))).Draw(t, "attribute"))
		}
		byDriver[d.Driver] = append(byDriver[d.Driver], d.Device)
	}
	var published []*sliceBuilder
	for i, driver := range hardware.Drivers() {
		published = append(published, slice(fmt.Sprint(i), byDriver[driver]...).driver(driver))
	}
	node := f.addNode(published...)
	// Few nodes are empty: an exhaustive search there takes long.
	inUse := rapid.SampledFrom([]int{0, 2, 3, 3, 4, 5}).Draw(t, "in use, of eight")
	for cycle := range f.cycles {
		for _, s := range published {
			for _, d := range s.Spec.Devices {
				if rapid.IntRange(0, 7).Draw(t, "in use") < inUse {
					f.take(cycle, s.Spec.Driver, node, d.Name)
				}
			}
		}
	}
}

// corpusClaim wants what the expression is about, or a little more or less. A second
// expression may stand beside it.
func corpusClaim(t *rapid.T, main corpus.Expression, all []corpus.Expression) *claimBuilder {
	c := claim("c")
	for i, r := range main.Requests {
		count := r.Count
		if oneIn(t, 4, "another count") {
			count = rapid.IntRange(1, 4).Draw(t, "count")
		}
		c.want(fmt.Sprint("c-", i), int64(count)).class(r.Driver)
	}
	c.define("main", main.Text).cel("main")
	if oneIn(t, 4, "another expression") {
		var others []corpus.Expression
		for _, e := range all {
			if e.Hardware.Name == main.Hardware.Name {
				others = append(others, e)
			}
		}
		c.define("other", rapid.SampledFrom(others).Draw(t, "other").Text).cel("other")
	}
	return c
}
