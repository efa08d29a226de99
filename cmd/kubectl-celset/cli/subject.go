// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/celset/celset/internal/clusterstate"
)

// subject reads everything, and finds the pod, claim or template that the only argument
// names. Without an argument it is the only one that there is.
func (o *options) subject(ctx context.Context, args []string) (*clusterstate.State, *clusterstate.Subject, error) {
	state, err := o.state(ctx)
	if err != nil {
		return nil, nil, err
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil, nil, err
	}
	argument := ""
	if len(args) > 0 {
		argument = args[0]
	}
	subject, err := state.Subject(argument, namespace)
	return state, subject, err
}
