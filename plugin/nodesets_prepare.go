// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/lru"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/plugin/metrics"
)

// What a node set constraint says is found, decoded and compiled in the background, as what claims say is: a claim that stands
// for the group is prepared like another. A scheduling cycle looks up what was compiled.

// groups is what all profiles of a scheduler choose sets of nodes with.
type groups struct {
	*nodeset.Chooser
	*preparing
	// ready has the groups whose expressions were compiled, by their wants.
	ready *lru.Cache
}

// maxReady is of how many groups that is remembered.
const maxReady = 4096

// groupsOf are those of all profiles.
func (p *profiles) groupsOf(ctx context.Context, measured *metrics.Metrics, handle fwk.Handle) (*groups, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.groups == nil {
		chooser, err := nodeset.NewChooser(measured)
		if err != nil {
			return nil, err
		}
		prepared := newPreparingOf(chooser.Preparer, chooser.Environment(), groupClaims{handle}, nodeset.Classes{})
		prepared.background = fairness.NewBackground[wanted](ctx)
		p.groups = &groups{chooser, prepared, lru.New(maxReady)}
	}
	return p.groups, nil
}

// groupClaims makes the claims that stand for groups: the API has none of them.
type groupClaims struct{ handle fwk.Handle }

// wantOf is the UID of the claim by which a group is prepared. The status of the group is no part of it.
func wantOf(group *schedulingapi.PodGroup) types.UID {
	return types.UID(fmt.Sprintf("%s/%d/%x", group.UID, group.Generation, maphash.String(wantSeed, group.Annotations[v1alpha1.NodeSetAnnotation])))
}

var wantSeed = maphash.MakeSeed()

// Get makes the claim of a group as it is now, for about as many nodes as will be chosen.
func (c groupClaims) Get(namespace, name string) (*resourceapi.ResourceClaim, error) {
	group, err := c.handle.PodGroupManager().PodGroups().Get(namespace, name)
	if err != nil {
		return nil, err
	}
	state, err := c.handle.PodGroupManager().PodGroupStates().Get(namespace, name)
	if err != nil {
		return nil, err
	}
	reference, ok := v1alpha1.NodeSetReference(group)
	if !ok {
		return nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), name)
	}
	pods := slices.Collect(maps.Values(state.UnscheduledPods()))
	constraint, err := v1alpha1.ResolveNodeSet(group, reference, c.of(pods), c.handle.SharedDRAManager().DeviceClasses())
	if err != nil {
		return nil, err
	}
	count := max(1, (len(pods)+constraint.PodsPerNode-1)/constraint.PodsPerNode)
	problem, err := nodeset.NewProblem(&nodeset.Group{Namespace: namespace, Name: name, Constraint: constraint, Kinds: []int{min(count, v1alpha1.MaxNodeSetSize)}})
	if err != nil {
		return nil, err
	}
	problem.Claim.UID = wantOf(group)
	return problem.Claim, nil
}

// of are the claims of pods, each once.
func (c groupClaims) of(pods []*v1.Pod) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	seen := map[string]bool{}
	for _, pod := range pods {
		for i := range pod.Spec.ResourceClaims {
			name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
			if err != nil || name == nil || seen[*name] {
				continue
			}
			seen[*name] = true
			if claim, err := c.handle.SharedDRAManager().ResourceClaims().Get(pod.Namespace, *name); err == nil {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}

// await has what a group says compiled, and a pod of it activated then. It is false if the pod has waited for long.
func (pl *NodeSets) await(pod *v1.Pod, group *schedulingapi.PodGroup) bool {
	claim := &resourceapi.ResourceClaim{}
	claim.Namespace, claim.Name, claim.UID = group.Namespace, group.Name, wantOf(group)
	return pl.all.await(pod, []*resourceapi.ResourceClaim{claim}, true, func(pod *v1.Pod) {
		pl.all.ready.Add(claim.UID, nil)
		pl.activate(pod)
	}) < pl.all.patience
}

// PreEnqueue gates a pod of a group until what the group says is compiled. It is called while the scheduling queue is locked,
// so it only looks up.
func (pl *NodeSets) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	if !pl.enabled {
		return nil
	}
	group, _, ok := pl.reference(pod, pl.handle.PodGroupManager().PodGroups())
	if !ok {
		return nil
	}
	if _, ready := pl.all.ready.Get(wantOf(group)); ready || !pl.await(pod, group) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, groupNotCompiled(group))
}

func groupNotCompiled(group *schedulingapi.PodGroup) string {
	return fmt.Sprintf("the expressions of PodGroup %s/%s are being compiled: the group is tried when that is done", group.Namespace, group.Name)
}
