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

// verdictsShare limits the verdicts of one expression to one eighth of the Cache.
const verdictsShare = 8

// VerdictsOf returns the table that caches the verdicts of an expression on sets of devices.
func (n *OnNode) VerdictsOf(d *definition.Definition) *verdict.Table {
	c := n.Planner.Cache
	key := tableKey{view: n.viewID(), kind: tableOfVerdicts, by: d.Key.Environment, text: d.Key.Text, isGoal: d.Key.IsGoal}
	return tableOf(c, key, func(grown func(int)) (*verdict.Table, int) {
		return verdict.NewTable(len(n.Inventory.Candidates), c.memory.Limit()/verdictsShare, grown), verdict.TableBytes
	})
}

// TablesOf returns the tables that the bounds of an expression use. If evaluating later conjuncts may exceed the cost limit,
// the tables cover only the conjuncts before them. It returns nil if no conjunct can be analyzed or the tables would be too
// large.
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

// Conflicts returns a function that returns the devices that exclude the device at a position, because of counters. It returns
// nil if no device consumes counters.
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

// selectorsKey returns the key for the verdicts of a request's selectors. ok is false if a selector is not a CEL selector.
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

// View returns the devices of the node in the form that expressions of the claims can read.
func (n *OnNode) View() *view.View {
	if n.cachedView == nil {
		n.cachedView = ViewOf(n.Planner.Cache, n.Inventory, n.Read())
	}
	return n.cachedView
}

// SelectionRow returns the cached verdicts of a request's selectors. It returns nil if the verdicts depend on the node or a
// selector is not a CEL selector. It also returns nil if caching does not pay off, because computing the view of a node takes
// as long as evaluating some selectors.
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

// SymmetryKinds returns a number for each device, which is equal for devices with the same attributes in read. If the numbers
// are not cached, find computes them.
func (n *OnNode) SymmetryKinds(read view.ReadSet, find func() []int) []int {
	key := tableKey{view: n.viewID(), kind: tableOfSymmetry, text: read.Fingerprint()}
	return tableOf(n.Planner.Cache, key, func(func(int)) ([]int, int) {
		kinds := find()
		return kinds, 8 * len(kinds)
	})
}

// SetsOf returns the sets of a shape on the idle node. If they are not cached, list finds them. The view of the node must
// contain everything that the shape's constraint reads. An error comes from list or from the context.
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
	found, _, err := Find(ctx, idle.Cache.tables.At(key), func() (sized, error) {
		sets, err := listed()
		if err != nil {
			return sized{}, err
		}
		return sized{value: sets, bytes: sets.Bytes()}, nil
	})
	sets, _ := found.value.(*freesets.Sets)
	return sets, err
}
