// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"sync"

	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
)

// Source provides the objects that questions are about.
type Source interface {
	// View returns the current objects. It is called for each question, so it must be fast. Several goroutines may call it.
	View(ctx context.Context) (*View, error)
}

// View holds the objects of a source at one time. The objects must not change any more. The quantities of slices must be limited
// ([clusterstate.Objects.LimitQuantities]).
type View struct {
	Objects *clusterstate.Objects
	// Hub holds the objects of a hub. It may be nil.
	Hub *placements.Hub
	// Origin says where the objects come from. Revision differs for views with different objects. Live is set if the source
	// follows changes.
	Origin   string
	Revision string
	Live     bool
	Warnings []string
}

// Static returns a source whose objects never change.
func Static(view View) Source { return static{&view} }

type static struct{ view *View }

// View implements [Source].
func (s static) View(context.Context) (*View, error) { return s.view, nil }

// current is the last view, with the results that were computed for it. Many questions are about the same revision.
type current struct {
	*View
	state    *clusterstate.State
	overview sync.Once
	// nodes is set by overview.
	nodes      []NodeSummary
	nodesError error
}

// current returns the source's view. It computes the state once for each revision.
func (a *Answers) current(ctx context.Context) (*current, error) {
	view, err := a.source.View(ctx)
	if err != nil {
		return nil, err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.last != nil && a.last.Revision == view.Revision {
		return a.last, nil
	}
	state, err := stateOf(ctx, view.Objects)
	if err != nil {
		return nil, err
	}
	a.last = &current{View: view, state: state}
	return a.last, nil
}

// stateOf returns the state with a copy of the lists of objects, because a state sorts its lists.
func stateOf(ctx context.Context, objects *clusterstate.Objects) (*clusterstate.State, error) {
	own := (&clusterstate.Objects{HasCluster: objects.HasCluster}).Overlay(objects)
	own.RunningUnknown = objects.RunningUnknown
	if err := own.Enrich(ctx); err != nil {
		return nil, err
	}
	own.WarnOfAttributes()
	return clusterstate.New(own), nil
}
