// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

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

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/preparation"
)

// What a node set constraint says is found, decoded and compiled in the background, as what claims say is: a claim that stands
// for the group is prepared like another. A scheduling cycle looks up what was compiled.

// Groups has what all profiles of a scheduler choose sets of nodes with.
type Groups struct {
	*nodeset.Chooser
	preparing  *preparation.Store
	background *preparation.Background
	// own has the *ownConstraint of groups that were prepared, by their wants.
	own *lru.Cache
}

// preparedGroupBytes bounds what is kept of what groups say.
const preparedGroupBytes = 16 << 20

// maxOwn is of how many groups that is remembered.
const maxOwn = 1024

// ownConstraint is what the annotation of a group says.
type ownConstraint struct {
	constraint *v1alpha1.NodeSetConstraint
	err        error
}

// NewGroups prepares the constraints of groups until the context ends.
func NewGroups(ctx context.Context, measured *metrics.Metrics, handle fwk.Handle) (*Groups, error) {
	chooser, err := nodeset.NewChooser(measured)
	if err != nil {
		return nil, err
	}
	own := lru.New(maxOwn)
	prepared := preparation.NewStoreOf(chooser.Preparer, chooser.Environment(), groupClaims{handle, own}, nodeset.Classes{}, preparedGroupBytes)
	return &Groups{chooser, prepared, preparation.NewBackground(ctx), own}, nil
}

// compiled returns what was prepared of a problem, or of the problem for another number of nodes. The error is
// [cel.ErrNotCompiled] if neither was.
func (pl *NodeSets) compiled(ctx context.Context, problem *nodeset.Problem) (*allocator.PreparedClaim, error) {
	prepared, missing := pl.prepared.Find([]*resourceapi.ResourceClaim{problem.Claim})
	if len(missing) == 0 {
		return prepared[problem.Claim.UID], nil
	}
	return pl.prepared.Keep(cel.OnlyCompiled(ctx), problem.Claim)
}

// groupClaims makes the claims that stand for groups: the API has none of them.
type groupClaims struct {
	handle fwk.Handle
	own    *lru.Cache
}

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
	own := &ownConstraint{}
	own.constraint, own.err = v1alpha1.GroupNodeSet(group)
	c.own.Add(wantOf(group), own)
	if own.err != nil {
		return nil, own.err
	}
	pods := slices.Collect(maps.Values(state.UnscheduledPods()))
	constraint, err := v1alpha1.ResolveNodeSet(group, own.constraint, reference, claimsOfPods(c.handle, pods), c.handle.SharedDRAManager().DeviceClasses())
	if err != nil {
		return nil, err
	}
	count := max(1, (len(pods)+constraint.PodsPerNode-1)/constraint.PodsPerNode)
	problem, err := nodeset.NewProblem(&nodeset.Group{Namespace: namespace, Name: name, Constraint: constraint}, 0, min(count, v1alpha1.MaxNodeSetSize))
	if err != nil {
		return nil, err
	}
	problem.Claim.UID = wantOf(group)
	return problem.Claim, nil
}

// claimsOfPods are the claims of pods, each once.
func claimsOfPods(handle fwk.Handle, pods []*v1.Pod) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	seen := map[string]bool{}
	for _, pod := range pods {
		for i := range pod.Spec.ResourceClaims {
			name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
			if err != nil || name == nil || seen[*name] {
				continue
			}
			seen[*name] = true
			if claim, err := handle.SharedDRAManager().ResourceClaims().Get(pod.Namespace, *name); err == nil {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}

// await has what a group says compiled, and a pod of it activated then.
func (pl *NodeSets) await(pod *v1.Pod, group *schedulingapi.PodGroup) {
	claim := &resourceapi.ResourceClaim{}
	claim.Namespace, claim.Name, claim.UID = group.Namespace, group.Name, wantOf(group)
	pl.prepared.Await(pod, []*resourceapi.ResourceClaim{claim})
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
	if _, known := pl.groups.own.Get(wantOf(group)); known {
		return nil
	}
	pl.await(pod, group)
	if pl.turns.Tell(pod, "", pl.prepared.Activate) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, groupNotCompiled(group))
}

func groupNotCompiled(group *schedulingapi.PodGroup) string {
	return fmt.Sprintf("the expressions of PodGroup %s/%s are being compiled: the group is tried when that is done", group.Namespace, group.Name)
}
