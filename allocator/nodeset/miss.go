// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Refusals count nodes, for each kind of pods, by why they can't take one.
type Refusals []map[string]int

// MaxReasons are named of those for which nodes can't take a pod.
const MaxReasons = 4

// Reason says that there is no set, and why nodes can't take pods.
func (p *Problem) Reason(nodes []Node, why Refusals) string {
	able := 0
	for _, n := range nodes {
		if slices.Contains(n.Takes, true) && !n.Placed {
			able++
		}
	}
	text := fmt.Sprintf("constraint %s/%s: no set of %d nodes, %d of them with pods of the group, satisfies it: %d of %d nodes can take a pod",
		v1alpha1.AttributeDomain, p.Constraint.Name, p.Size(), p.Placed, able, len(nodes))
	counts := map[string]int{}
	for _, kind := range why {
		for reason, n := range kind {
			counts[reason] = max(counts[reason], n)
		}
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for _, reason := range reasons[:min(len(reasons), MaxReasons)] {
		text += fmt.Sprintf(", %d %s", counts[reason], reason)
	}
	return text
}

// Compiler returns what was prepared of a problem.
type Compiler func(ctx context.Context, problem *Problem) (*allocator.PreparedClaim, error)

// NearestMiss names the set that misses by least: which of its nodes can't take a pod, for what of why, and what stands on
// them. It is empty if that can't be found out.
func (c *Chooser) NearestMiss(ctx context.Context, p *Problem, nodes []Node, why []string, compiled Compiler, standing func(node int) string, opts ...allocator.Option) string {
	if p.ReadsDevices {
		return ""
	}
	nearest, err := NewProblem(p.Nearest())
	if err != nil {
		return ""
	}
	prepared, err := compiled(ctx, nearest)
	if err != nil {
		return ""
	}
	choice, err := c.Choose(ctx, nearest, prepared, Able(nodes), opts...)
	if err != nil || choice == nil || len(choice.Kinds) == 0 {
		return ""
	}
	var unable []string
	for _, i := range choice.Kinds[0] {
		if !slices.Contains(nodes[i].Takes, true) {
			unable = append(unable, nodes[i].Name+": "+why[i]+standing(i))
		}
	}
	if len(unable) == 0 {
		return ""
	}
	return fmt.Sprintf("; nearest miss: %d of %d nodes of a set can take a pod, not %s",
		nearest.Size()-len(unable), nearest.Size(), strings.Join(unable[:min(len(unable), MaxReasons)], "; "))
}

// Standing names pods on a node, and counts those of other namespaces.
func Standing(pods iter.Seq[*v1.Pod], namespace string) (text string) {
	own, others := 0, 0
	for pod := range pods {
		switch {
		case pod.Namespace != namespace:
			others++
		case own < MaxReasons:
			own++
			text += ", pod " + pod.Name
		}
	}
	if others > 0 {
		text += fmt.Sprintf(", %d pods of other namespaces", others)
	}
	return text
}
