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

// Node set constraints are resolved, decoded and compiled in the background, in the same way as claims. A synthetic claim
// represents each group. A scheduling cycle only looks up the compiled claim.

// Groups holds the compiled node set constraints of all profiles of a scheduler.
type Groups struct {
	*nodeset.Chooser
	preparing  *preparation.Store
	background *preparation.Background
	// own maps the UID of a group's synthetic claim (wantOf) to the decoded annotation of the group (*ownConstraint).
	own *lru.Cache
}

// preparedGroupBytes is the maximum size in bytes of all compiled constraints of groups.
const preparedGroupBytes = 16 << 20

// maxOwn is the maximum number of decoded annotations in own.
const maxOwn = 1024

// ownConstraint is the result of decoding the annotation of a group.
type ownConstraint struct {
	constraint *v1alpha1.NodeSetConstraint
	err        error
}

// NewGroups returns a Groups. Its goroutines compile constraints until ctx is done.
func NewGroups(ctx context.Context, measured *metrics.Metrics, handle fwk.Handle) (*Groups, error) {
	chooser, err := nodeset.NewChooser(measured)
	if err != nil {
		return nil, err
	}
	own := lru.New(maxOwn)
	prepared := preparation.NewStoreOf(chooser.Preparer, chooser.Environment(), groupClaims{handle, own}, nodeset.Classes{}, preparedGroupBytes)
	return &Groups{chooser, prepared, preparation.NewBackground(ctx), own}, nil
}

// compiled returns the compiled synthetic claim of a problem. If the claim was compiled for another number of nodes, compiled
// adapts it. If there is no compiled claim at all, the error is [cel.ErrNotCompiled].
func (pl *NodeSets) compiled(ctx context.Context, problem *nodeset.Problem) (*allocator.PreparedClaim, error) {
	prepared, missing := pl.prepared.Find([]*resourceapi.ResourceClaim{problem.Claim})
	if len(missing) == 0 {
		return prepared[problem.Claim.UID], nil
	}
	return pl.prepared.Keep(cel.OnlyCompiled(ctx), problem.Claim)
}

// groupClaims returns the synthetic claims that represent groups.
type groupClaims struct {
	handle fwk.Handle
	own    *lru.Cache
}

// wantOf returns the UID of a group's synthetic claim. The UID changes with the group's spec and annotation, not with its
// status.
func wantOf(group *schedulingapi.PodGroup) types.UID {
	return types.UID(fmt.Sprintf("%s/%d/%x", group.UID, group.Generation, maphash.String(wantSeed, group.Annotations[v1alpha1.NodeSetAnnotation])))
}

var wantSeed = maphash.MakeSeed()

// Get returns the synthetic claim for the current version of a group. The claim requests as many nodes as the pods probably
// need.
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

// claimsOfPods returns the ResourceClaims that the pods use. A shared claim is returned once.
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

// await requests the compilation of a group's constraint. After the compilation, the pod is activated.
func (pl *NodeSets) await(pod *v1.Pod, group *schedulingapi.PodGroup) {
	claim := &resourceapi.ResourceClaim{}
	claim.Namespace, claim.Name, claim.UID = group.Namespace, group.Name, wantOf(group)
	pl.prepared.Await(pod, []*resourceapi.ResourceClaim{claim})
}

// PreEnqueue gates a pod of a group until the group's constraint is compiled. The scheduling queue is locked meanwhile, so
// PreEnqueue compiles nothing: it only looks up the compiled constraint.
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
	if pl.turns.MustReport(pod, "", pl.prepared.Activate) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, groupNotCompiled(group))
}

func groupNotCompiled(group *schedulingapi.PodGroup) string {
	return fmt.Sprintf("the expressions of PodGroup %s/%s are being compiled: the scheduler tries the group after that", group.Namespace, group.Name)
}
