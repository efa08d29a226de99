// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/plugin/metrics"
)

// What a node set constraint says is compiled in the background, as what claims say is: the claim that stands for a group is
// prepared like another.

// groupClaims has the claims of groups that wait for being prepared: the API has none of them.
type groupClaims struct {
	mutex sync.Mutex
	known map[string]*resourceapi.ResourceClaim
}

// Get returns the claim of a group.
func (c *groupClaims) Get(namespace, name string) (*resourceapi.ResourceClaim, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if claim := c.known[namespace+"/"+name]; claim != nil {
		return claim, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), name)
}

func (c *groupClaims) add(claim *resourceapi.ResourceClaim) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.known[claim.Namespace+"/"+claim.Name] = claim
}

func (c *groupClaims) remove(claim *resourceapi.ResourceClaim) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known := c.known[claim.Namespace+"/"+claim.Name]; known != nil && known.UID == claim.UID {
		delete(c.known, claim.Namespace+"/"+claim.Name)
	}
}

// nodeSetsOf is what all profiles choose sets of nodes with.
func (p *profiles) nodeSetsOf(ctx context.Context, measured *metrics.Metrics) (*nodeset.Chooser, *preparing, *groupClaims, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.chooser == nil {
		chooser, err := nodeset.NewChooser(measured)
		if err != nil {
			return nil, nil, nil, err
		}
		p.groupClaims = &groupClaims{known: map[string]*resourceapi.ResourceClaim{}}
		p.preparingGroups = newPreparingOf(chooser.Preparer, chooser.Environment(), p.groupClaims, nodeset.Classes{})
		p.preparingGroups.background = fairness.NewBackground[wanted](ctx)
		p.chooser = chooser
	}
	return p.chooser, p.preparingGroups, p.groupClaims, nil
}

// await has what a group says compiled, and a pod of it activated then.
func (pl *NodeSets) await(pod *v1.Pod, problem *nodeset.Problem) bool {
	pl.claims.add(problem.Claim)
	waited := pl.preparing.await(pod, []*resourceapi.ResourceClaim{problem.Claim}, true, func(pod *v1.Pod) {
		pl.claims.remove(problem.Claim)
		pl.activate(pod)
	})
	return waited < pl.preparing.patience
}

// PreEnqueue gates a pod of a group until what the group says is compiled. It is called while the scheduling queue is locked,
// so it only looks up.
func (pl *NodeSets) PreEnqueue(ctx context.Context, pod *v1.Pod) *fwk.Status {
	if !pl.enabled || pl.handle.PodGroupManager() == nil {
		return nil
	}
	group, name, ok := pl.reference(pod, pl.handle.PodGroupManager().PodGroups())
	if !ok {
		return nil
	}
	constraint, err := v1alpha1.ResolveNodeSet(group, name, pl.claimsOf([]*v1.Pod{pod}), pl.handle.SharedDRAManager().DeviceClasses())
	if err != nil {
		// The scheduling cycle says what is wrong.
		return nil
	}
	count := 1
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		count = min(int(gang.MinCount), v1alpha1.MaxNodeSetSize)
	}
	problem, err := nodeset.NewProblem(&nodeset.Group{Namespace: group.Namespace, Name: group.Name, Constraint: constraint, Kinds: []int{max(1, count/constraint.PodsPerNode)}})
	if err != nil {
		return nil
	}
	_, missing, err := pl.preparing.prepared(ctx, []*resourceapi.ResourceClaim{problem.Claim}, true)
	if err != nil || len(missing) == 0 || !pl.await(pod, problem) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("the expressions of %s are being compiled: the group is tried when that is done", constraint.Source))
}
