// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

// Matcher compiles an expression over one cluster, the variable managedCluster. It returns a function that evaluates the expression
// on a cluster of the hub, at the time now.
func (h *Hub) Matcher(ctx context.Context, expression string, now time.Time) (func(ctx context.Context, name string) (bool, error), error) {
	environment, err := cluster.NewEnvironment(cel.Config{})
	if err != nil {
		return nil, err
	}
	selector, err := environment.Compile(ctx, clusterv1beta1.ClusterSelector{CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{expression}}}, nil)
	if err != nil {
		return nil, withoutPath(err)
	}
	byName := make(map[string]*clusterv1.ManagedCluster, len(h.clusters))
	for _, of := range h.clusters {
		byName[of.Name] = of
	}
	return func(ctx context.Context, name string) (bool, error) {
		of := byName[name]
		if of == nil {
			return false, fmt.Errorf("there is no ManagedCluster %q", name)
		}
		verdict, err := selector.Match(ctx, cluster.New(of), cluster.Hub{Scores: h, Now: now})
		return verdict.Matches, withoutPath(err)
	}, nil
}

// withoutPath returns the error without the path of the expression, because the expression comes from no object.
func withoutPath(err error) error {
	if err == nil {
		return nil
	}
	if of, ok := errors.AsType[*cluster.Error](err); ok {
		return of.Err
	}
	return errors.New(strings.TrimSpace(err.Error()))
}
