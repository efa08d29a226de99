// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"weak"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/freesets"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/allocator/internal/shape"
	"github.com/celset/celset/allocator/internal/verdict"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// verdictsShare is the part of a Cache that the verdicts of one expression may take: an eighth.
const verdictsShare = 8

// verdictsOf returns the verdicts of an expression on sets of the devices.
func (n *onNode) verdictsOf(d *definition.Definition) *verdict.Table {
	c := n.planner.cache
	key := tableKey{view: n.viewID(), kind: tableOfVerdicts, by: d.Key.Environment, text: d.Key.Text, isGoal: d.Key.IsGoal}
	return tableOf(c, key, func(grown func(int)) (*verdict.Table, int) {
		return verdict.NewTable(len(n.inventory.Candidates), c.memory.Limit()/verdictsShare, grown), verdict.TableBytes
	})
}

// tablesOf returns the tables of an expression over the devices, or of its first conjuncts if
// what follows may cost more than the limit. nil if nothing is understood, or the expression is too large
// for so many devices.
func (n *onNode) tablesOf(d *definition.Definition, shape definition.SetShape) *bound.Tables {
	c := n.planner.cache
	key := tableKey{n.viewID(), tableOfExpression, d.Key.Environment, d.Key.Text, d.Key.IsGoal, shape}
	if known, ok := tableAt[*bound.Tables](c, key); ok {
		return known
	}
	return tableKeeping(c, key, func(grown func(int)) (tables *bound.Tables, bytes int, keeps *view.View) {
		analysis, of := definition.AnalysisOf(d, shape), n.view()
		leading := analysis.Leading(of.Values)
		if leading == nil || !leading.Fits(len(of.Values)) {
			return nil, 0, nil
		}
		tables = leading.Tabulate(of.Values)
		tables.Grown = grown
		return tables, tables.Size() + analysis.Size() + d.Expression.Size(), of
	})
}

// conflicts are for each device those that can't be had beside it. nil if there are no counters.
func (n *onNode) conflicts() func(position int) bitset.Set {
	if !n.inventory.ConsumesCounters() {
		return nil
	}
	key := tableKey{kind: tableOfConflicts, by: weak.Make(n.inventory)}
	return tableOf(n.planner.cache, key, func(func(int)) (bitset.List, int) {
		devices := len(n.inventory.Candidates)
		return n.inventory.Conflicts(), devices * devices / 8
	}).At
}

// selectorsKey is false if one of the selectors of a request is none.
func (n *onNode) selectorsKey(r *requests.Request) (key tableKey, ok bool) {
	memory := fingerprint.Memory.Get().(*[]byte)
	defer fingerprint.Memory.Put(memory)
	content := (*memory)[:0]
	for _, selectors := range [][]resourceapi.DeviceSelector{r.Class.Spec.Selectors, r.Spec.Selectors} {
		for _, selector := range selectors {
			if selector.CEL == nil {
				return tableKey{}, false
			}
			content = fingerprint.AppendPart(content, selector.CEL.Expression)
		}
	}
	*memory = content
	return tableKey{view: n.viewID(), kind: tableOfSelectors, by: n.planner.selectors, text: fingerprint.Of(content)}, true
}

// view returns the node's devices as the claims see them.
func (n *onNode) view() *view.View {
	if n.seen == nil {
		n.seen = viewOf(n.planner.cache, n.inventory, n.read())
	}
	return n.seen
}

// selectionRow returns the verdicts of the selectors of a request that are remembered. It is nil if the node
// plays a role, or a selector is none, or nothing is to be remembered: finding the view of a node takes as long as evaluating
// some selectors.
func (n *onNode) selectionRow(r *requests.Request) *selection.Row {
	if !n.planner.sharesCache && !n.isConstrained() || n.inventory.DevicesSelectNodes() {
		return nil
	}
	key, ok := n.selectorsKey(r)
	if !ok {
		return nil
	}
	if known, ok := tableAt[*selection.Row](n.planner.cache, key); ok {
		return known
	}
	return tableOf(n.planner.cache, key, func(func(int)) (*selection.Row, int) {
		row := selection.NewRow(len(n.inventory.Candidates))
		return row, row.Bytes()
	})
}

// symmetryKinds returns the numbers that find gives to devices which are the same in the attributes of a read set.
func (n *onNode) symmetryKinds(read view.ReadSet, find func() []int) []int {
	key := tableKey{view: n.viewID(), kind: tableOfSymmetry, text: read.Fingerprint()}
	return tableOf(n.planner.cache, key, func(func(int)) ([]int, int) {
		kinds := find()
		return kinds, 8 * len(kinds)
	})
}

// setsOf returns the sets of a shape on the node when nothing is in use, as far as list found them. The view of the node has to
// have what the shape reads. The error is that of list, or the context has ended.
func (n *onNode) setsOf(ctx context.Context, shape shape.Shape, list func(context.Context, onNode) (*freesets.Sets, error)) (*freesets.Sets, error) {
	idle, claim := n.planner.shapes.idle(), n.planner.shapes.claimFor(shape)
	listed := func() (*freesets.Sets, error) {
		return list(ctx, idle.planFor([]*resourceapi.ResourceClaim{claim}).onIdle(n.node, n.inventory))
	}
	content, ok := idle.resolved(claim).fingerprint()
	if !ok || n.inventory.DevicesSelectNodes() {
		return listed()
	}
	by := shapeFeatures{features: n.planner.features, environment: n.planner.environment}
	if !n.inventory.IsPlain {
		by.devices = weak.Make(n.inventory)
	}
	key := tableKey{view: n.viewID(), kind: tableOfSets, by: by, text: content}
	found, _, err := find(ctx, idle.cache.tables.At(key), func() (weighed, error) {
		sets, err := listed()
		if err != nil {
			return weighed{}, err
		}
		return weighed{value: sets, bytes: sets.Bytes()}, nil
	})
	sets, _ := found.value.(*freesets.Sets)
	return sets, err
}
