// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
)

// onError says what becomes of failures of the constraint that was defined last.
func (b *claimBuilder) onError(value v1alpha1.OnError) *claimBuilder {
	raw := &b.Spec.Devices.Config[len(b.Spec.Devices.Config)-1].Opaque.Parameters.Raw
	*raw = []byte(strings.TrimSuffix(string(*raw), "}") + `,"onError":"` + string(value) + `"}`)
	return b
}

func TestFailuresOfOneNode(t *testing.T) {
	const detail = "claim default/c, constraint row, node node-1, devices [mla.example.com/pool-1/mla-0, mla.example.com/pool-1/mla-1]: the expression fails: line 1, column 92: no such key: row" +
		". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
	bad, good := slice("bad", ring(4)...), slice("good", ring(4)...).onNode("node-2").pool("pool-2", 1, 1)
	for i := range good.Spec.Devices {
		row := int64(i / 2)
		good.Spec.Devices[i].Attributes["row"] = resourceapi.DeviceAttribute{IntValue: &row}
	}
	failing := func() *claimBuilder {
		return claim("c").want("x", 2).cel("row").define("row", "devices.all(d, d.attributes['mla.example.com'].index < 9 && d.attributes['mla.example.com'].row == 1)")
	}
	s := scenario{slices: []*sliceBuilder{bad, good}, opts: []Option{WithReasons()}}

	for _, abort := range []*claimBuilder{failing(), failing().onError(v1alpha1.OnErrorAbort)} {
		s.claims = []*claimBuilder{abort}
		_, err := s.allocate(t)
		require.ErrorContains(t, err, "no such key: row")
		require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
	}

	s.claims = []*claimBuilder{failing().onError(v1alpha1.OnErrorNodeDoesNotFit)}
	for name, opts := range map[string][]Option{"exhaustive": {WithExhaustiveSearch()}, "pruned": nil, "cached": {WithCache(NewCache())}} {
		t.Run(name, func(t *testing.T) {
			s := s
			s.opts = append([]Option{WithReasons()}, opts...)
			for range 3 {
				_, err := s.allocate(t)
				require.ErrorIs(t, err, structured.ErrFailedAllocationOnNode)
				require.EqualError(t, err, "constraint row: the expression fails on devices of the node: "+detail[strings.Index(detail, "line"):])
				var failure *EvaluationError
				require.ErrorAs(t, err, &failure)
				require.Equal(t, cel.ReasonRuntime, failure.Reason)
				require.Equal(t, detail, failure.Detail())
			}
			s.node = newNode("node-2")
			s.requireDevices(t, "x=mla-2", "x=mla-3")

			// A node with devices that look the same is known, and told by its own name.
			s.node = newNode("node-3")
			s.slices = append([]*sliceBuilder{}, bad, good, slice("third", ring(4)...).onNode("node-3").pool("pool-3", 1, 1))
			_, err := s.allocate(t)
			var failure *EvaluationError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, strings.NewReplacer("node-1", "node-3", "pool-1", "pool-3").Replace(detail), failure.Detail())
		})
	}
	s.opts = nil
	s.requireNone(t)
}

// TestLimitsOfOneEvaluationAreOfTheNode, and budgets are not: they are used up by what came before.
func TestLimitsOfOneEvaluationAreOfTheNode(t *testing.T) {
	expensive := "devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, devices.all(f, string(a.driver).size() > 0))))))"
	s := scenario{
		slices: []*sliceBuilder{slice("ring", ring(20)...)}, opts: []Option{WithReasons()},
		claims: []*claimBuilder{claim("c").want("x", 20).cel("a").define("a", expensive).onError(v1alpha1.OnErrorNodeDoesNotFit)},
	}
	_, err := s.allocate(t)
	var failure *EvaluationError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, cel.ReasonCostLimit, failure.Reason)

	s.opts = append(s.opts, WithCostBudget(1))
	s.claims = []*claimBuilder{claim("c").want("x", 2).cel("a").define("a", "devices.slice(0, 1).size() == 2").onError(v1alpha1.OnErrorNodeDoesNotFit)}
	_, err = s.allocate(t)
	require.ErrorAs(t, err, new(*BudgetError))
	require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
}
