// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

// VerdictsOf returns the verdicts of an expression on sets of the devices.
func (n *OnNode) VerdictsOf(d *definition.Definition) *verdict.Table {
	c := n.Planner.Cache
	key := tableKey{view: n.viewID(), kind: tableOfVerdicts, by: d.Key.Environment, text: d.Key.Text, isGoal: d.Key.IsGoal}
	return tableOf(c, key, func(grown func(int)) (*verdict.Table, int) {
		return verdict.NewTable(len(n.Inventory.Candidates), c.memory.Limit()/verdictsShare, grown), verdict.TableBytes
	})
}

// TablesOf returns the tables of an expression over the devices, or of its first conjuncts if
// what follows may cost more than the limit. nil if nothing is understood, or the expression is too large
// for so many devices.
func (n *OnNode) TablesOf(d *definition.Definition, shape definition.SetShape) *bound.Tables {
	c := n.Planner.Cache
	key := tableKey{n.viewID(), tableOfExpression, d.Key.Environment, d.Key.Text, d.Key.IsGoal, shape}
	if known, ok := tableAt[*bound.Tables](c, key); ok {
		return known
	}
	return tableKeeping(c, key, func(grown func(int)) (tables *bound.Tables, bytes int, keeps *view.View) {
		analysis, of := definition.AnalysisOf(d, shape), n.View()
		leading := analysis.Leading(of.Values)
		if leading == nil || !leading.Fits(len(of.Values)) {
			return nil, 0, nil
		}
		tables = leading.Tabulate(of.Values)
		tables.Grown = grown
		return tables, tables.Size() + analysis.Size() + d.Expression.Size(), of
	})
}

// Conflicts are for each device those that can't be had beside it. nil if there are no counters.
func (n *OnNode) Conflicts() func(position int) bitset.Set {
	if !n.Inventory.ConsumesCounters() {
		return nil
	}
	key := tableKey{kind: tableOfConflicts, by: weak.Make(n.Inventory)}
	return tableOf(n.Planner.Cache, key, func(func(int)) (bitset.List, int) {
		devices := len(n.Inventory.Candidates)
		return n.Inventory.Conflicts(), devices * devices / 8
	}).At
}

// selectorsKey is false if one of the selectors of a request is none.
func (n *OnNode) selectorsKey(r *requests.Request) (key tableKey, ok bool) {
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
	return tableKey{view: n.viewID(), kind: tableOfSelectors, by: n.Planner.Selectors, text: fingerprint.Of(content)}, true
}

// View returns the node's devices as the claims see them.
func (n *OnNode) View() *view.View {
	if n.seen == nil {
		n.seen = ViewOf(n.Planner.Cache, n.Inventory, n.Read())
	}
	return n.seen
}

// SelectionRow returns the verdicts of the selectors of a request that are remembered. It is nil if the node
// plays a role, or a selector is none, or nothing is to be remembered: finding the view of a node takes as long as evaluating
// some selectors.
func (n *OnNode) SelectionRow(r *requests.Request) *selection.Row {
	if !n.Planner.SharesCache && !n.isConstrained() || n.Inventory.DevicesSelectNodes() {
		return nil
	}
	key, ok := n.selectorsKey(r)
	if !ok {
		return nil
	}
	if known, ok := tableAt[*selection.Row](n.Planner.Cache, key); ok {
		return known
	}
	return tableOf(n.Planner.Cache, key, func(func(int)) (*selection.Row, int) {
		row := selection.NewRow(len(n.Inventory.Candidates))
		return row, row.Bytes()
	})
}

// SymmetryKinds returns the numbers that find gives to devices which are the same in the attributes of a read set.
func (n *OnNode) SymmetryKinds(read view.ReadSet, find func() []int) []int {
	key := tableKey{view: n.viewID(), kind: tableOfSymmetry, text: read.Fingerprint()}
	return tableOf(n.Planner.Cache, key, func(func(int)) ([]int, int) {
		kinds := find()
		return kinds, 8 * len(kinds)
	})
}

// SetsOf returns the sets of a shape on the node when nothing is in use, as far as list found them. The view of the node has to
// have what the shape reads. The error is that of list, or the context has ended.
func (n *OnNode) SetsOf(ctx context.Context, shape shape.Shape, list func(context.Context, OnNode) (*freesets.Sets, error)) (*freesets.Sets, error) {
	idle, claim := n.Planner.shapes.idle(), n.Planner.shapes.claimFor(shape)
	listed := func() (*freesets.Sets, error) {
		return list(ctx, idle.PlanFor([]*resourceapi.ResourceClaim{claim}).OnIdle(n.Node, n.Inventory))
	}
	content, ok := idle.Resolved(claim).fingerprint()
	if !ok || n.Inventory.DevicesSelectNodes() {
		return listed()
	}
	by := shapeFeatures{features: n.Planner.Features, environment: n.Planner.Environment}
	if !n.Inventory.IsPlain {
		by.devices = weak.Make(n.Inventory)
	}
	key := tableKey{view: n.viewID(), kind: tableOfSets, by: by, text: content}
	found, _, err := Find(ctx, idle.Cache.tables.At(key), func() (weighed, error) {
		sets, err := listed()
		if err != nil {
			return weighed{}, err
		}
		return weighed{value: sets, bytes: sets.Bytes()}, nil
	})
	sets, _ := found.value.(*freesets.Sets)
	return sets, err
}
