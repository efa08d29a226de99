// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"errors"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/noderesources"
)

// hosts computes which pods of the group fit together on nodes, from the objects in the cluster. It implements [nodeset.Hosts].
// It adds up CPU, memory, ports and the number of pods, and allocates devices for the claims of all pods at once.
type hosts struct {
	question *question
	// kinds[i] holds the pods of the i-th kind. Pods of a kind are equivalent.
	kinds [][]*clusterstate.Subject
	// users counts, for each claim, the pending pods of the group that use the claim.
	users   map[*resourceapi.ResourceClaim]int
	compete bool
}

var _ nodeset.Hosts = &hosts{}

func newHosts(q *question) *hosts {
	h := &hosts{question: q, users: map[*resourceapi.ResourceClaim]int{}}
	hasClaims := false
	for _, subject := range q.waiting {
		for _, claim := range subject.Pending() {
			hasClaims = true
			if h.users[claim]++; h.users[claim] > 1 {
				h.compete = true
			}
		}
	}
	h.compete = !q.search.ReadsDevices && (h.compete || hasClaims && slices.ContainsFunc(q.slices, func(s *resourceapi.ResourceSlice) bool { return !allocator.IsLocal(s) }))
	return h
}

// Each implements [nodeset.Hosts].
func (h *hosts) Each(ctx context.Context, n int, do func(int)) {
	for i := 0; i < n && ctx.Err() == nil; i++ {
		do(i)
	}
}

// Compete implements [nodeset.Hosts].
func (h *hosts) Compete() bool { return h.compete }

// Refusal implements [nodeset.Hosts].
func (h *hosts) Refusal(ctx context.Context, node int, load nodeset.Load) (string, error) {
	q := h.question
	pods := h.podsOf(load)
	if room := fit.FreeOf(q.state, q.nodes[node]); room != nil {
		for _, subject := range pods {
			need := noderesources.Requests(subject.Pod)
			if lacks := room.Lacks(need); len(lacks) > 0 {
				return strings.Join(lacks, ", "), nil
			}
			room.Take(need)
		}
	}
	claims := h.claimsOf(node, pods)
	if len(claims) == 0 {
		return "", nil
	}
	a, err := q.allocator(ctx, pods[0])
	if err != nil {
		return "", err
	}
	results, err := a.Allocate(ctx, q.nodes[node], claims)
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return err.Error(), nil
	case results == nil && err == nil:
		return "cannot allocate all claims", nil
	}
	return "", err
}

// Together implements [nodeset.Hosts].
func (h *hosts) Together(ctx context.Context, members []nodeset.Member) (bool, error) {
	q := h.question
	var on []allocator.NodeClaims
	for _, m := range members {
		if claims := h.claimsOf(m.Node, h.podsOf(m.Load)); len(claims) > 0 {
			on = append(on, allocator.NodeClaims{Node: q.nodes[m.Node], Claims: claims})
		}
	}
	if len(on) == 0 {
		return true, nil
	}
	a, err := q.allocator(ctx, q.waiting[0])
	if err != nil {
		return false, err
	}
	results, err := a.AllocateAcross(ctx, on)
	return results != nil, err
}

// podsOf returns the first load[i] pods of each kind i. Pods of a kind are interchangeable.
func (h *hosts) podsOf(load nodeset.Load) (pods []*clusterstate.Subject) {
	for kind, n := range load {
		pods = append(pods, h.kinds[kind][:n]...)
	}
	return pods
}

// claimsOf returns the claims without devices that the pods use on a node. A claim that several pods share occurs once. Each
// other claim is copied, because the same pods can represent other pods of their kind on another node.
func (h *hosts) claimsOf(node int, pods []*clusterstate.Subject) (claims []*resourceapi.ResourceClaim) {
	for _, subject := range pods {
		for _, claim := range h.question.state.PendingOn(subject, h.question.nodes[node]) {
			if h.users[claim] < 2 {
				own := *claim
				claims = append(claims, &own)
			} else if !slices.Contains(claims, claim) {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}
