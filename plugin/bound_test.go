// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A pod that is bound though the scheduler was not told so keeps its claims; one that is not gives them back.
func TestBoundPodsKeepTheirClaims(t *testing.T) {
	for name, test := range map[string]struct {
		// live is what the API server has; nil: nothing.
		live     func(*v1.Pod) *v1.Pod
		failures int
		keeps    bool
	}{
		"bound":                {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = nodeName; return p }, keeps: true},
		"bound, told later":    {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = nodeName; return p }, keeps: true, failures: 1},
		"not bound":            {live: func(p *v1.Pod) *v1.Pod { return p }},
		"bound by somebody":    {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = "another"; return p }},
		"another pod, bound":   {live: func(p *v1.Pod) *v1.Pod { p.UID, p.Spec.NodeName = "another", nodeName; return p }},
		"gone":                 {},
		"gone, and told later": {failures: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFallible(t, class(), slice(0), renamed(claim(1), "first"))
			user := renamed(pod(), "first")
			if test.live != nil {
				require.NoError(t, f.client.Tracker().Add(test.live(user.DeepCopy())))
			}
			failures := test.failures
			f.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				failures--
				return failures >= 0, nil, errors.New("no answer")
			})
			state := framework.NewCycleState()
			_, status := f.PreFilter(f.ctx, state, user, nil)
			require.True(t, status.IsSuccess(), status)
			require.True(t, f.Filter(f.ctx, state, user, node(nodeName)).IsSuccess())
			require.True(t, f.Reserve(f.ctx, state, user, nodeName).IsSuccess())
			require.True(t, f.PreBind(f.ctx, state, user, nodeName).IsSuccess())
			before := len(f.client.Actions())
			f.Unreserve(f.ctx, state, user, nodeName)
			patches := 0
			for _, action := range f.client.Actions()[before:] {
				if action.Matches("patch", "resourceclaims/status") || action.GetVerb() == "patch" && action.GetResource().Resource == "resourceclaims" {
					patches++
				}
			}
			require.Equal(t, !test.keeps, patches > 0, "%v", f.client.Actions()[before:])
		})
	}
}

// What is taken back before the binding asks nobody.
func TestUnreserveBeforeBinding(t *testing.T) {
	f := startFallible(t, class(), slice(0), renamed(claim(1), "first"))
	user := renamed(pod(), "first")
	state := framework.NewCycleState()
	_, status := f.PreFilter(f.ctx, state, user, nil)
	require.True(t, status.IsSuccess(), status)
	require.True(t, f.Filter(f.ctx, state, user, node(nodeName)).IsSuccess())
	require.True(t, f.Reserve(f.ctx, state, user, nodeName).IsSuccess())
	before := len(f.client.Actions())
	f.Unreserve(f.ctx, state, user, nodeName)
	require.Len(t, f.client.Actions(), before)
	require.Nil(t, f.claims.ResourceClaims().GetPendingAllocation("first"))
}
