// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// randomPod has claims that are to satisfy the expressions.
func randomPod(t *rapid.T, plain bool, expressions []string) []*claimBuilder {
	claims := []*claimBuilder{plainClaim(t)}
	if !plain {
		claims = nil
		for i := range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "claims") {
			claims = append(claims, randomClaim(t, string(rune('a'+i))))
		}
	}
	for _, c := range claims {
		for _, name := range []string{"first", "second"}[:rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "constraints")] {
			var covered []string
			if oneIn(t, 4, "covers some") {
				covered = []string{randomReference(t, c), randomReference(t, c)}
			}
			c.define(name, rapid.SampledFrom(expressions).Draw(t, "expression")).cel(name, covered...)
		}
	}
	return claims
}

// alteredPod has copies of the claims under other names. Something else in one of them
// may differ too.
func alteredPod(t *rapid.T, pod []*claimBuilder) []*claimBuilder {
	var result []*claimBuilder
	for _, original := range pod {
		c := &claimBuilder{original.DeepCopy()}
		c.Name += "-copy"
		result = append(result, c)
	}
	d := &rapid.SampledFrom(result).Draw(t, "altered claim").Spec.Devices
	first := d.Requests[0].Exactly
	switch rapid.IntRange(0, 6).Draw(t, "alteration of the claim") {
	case 0:
		slices.Reverse(d.Constraints)
	case 1:
		d.Constraints = d.Constraints[:max(1, len(d.Constraints)-1)]
	case 2:
		d.Constraints[0].Requests = []string{d.Requests[0].Name}
	case 3:
		if first != nil && first.Count > 0 {
			first.Count++
		}
	case 4:
		if first != nil {
			first.Selectors = append(first.Selectors, celSelectors([]string{index + " != 1"})...)
		}
	case 5:
		if first != nil {
			first.AdminAccess = ptr.To(true)
		}
	case 6: // the names differ only
	}
	return result
}

// plainClaim leaves most to the expressions.
func plainClaim(t *rapid.T) *claimBuilder {
	c := claim("c")
	counts := rapid.SampledFrom([][]int64{{3}, {3}, {4}, {2}, {2, 2}, {1, 2}, {2, 1, 1}, {3}}).Draw(t, "counts")
	for i, count := range counts {
		c.want(fmt.Sprint("c-", i), count, rapid.SampledFrom([][]string{
			nil, nil, nil, nil, nil, nil,
			{"1 / (" + index + " - 5) < 2"},
			{index + " != 2"},
			{"device.attributes['" + driver + "'].rank != 2"},
		}).Draw(t, "selectors")...)
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "attribute constraints") {
		add := rapid.SampledFrom([]func(string, ...string) *claimBuilder{c.match, c.distinct}).Draw(t, "attribute constraint")
		add(driver+"/"+rapid.SampledFrom([]string{"letter", "rank", "weight", "healthy"}).Draw(t, "attribute"), randomReference(t, c), randomReference(t, c))
	}
	if oneIn(t, 8, "derived") {
		c.derive(color, randomDerived(t)).match(color)
	}
	return c
}
