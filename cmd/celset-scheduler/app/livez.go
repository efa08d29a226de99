// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
)

// kube-scheduler has no way to add a check to /livez: it hands a fixed list to a handler that
// it makes itself, and that of /livez is empty. What a program can replace before it runs is
// the authorizer that each request passes. One that returns an error makes the answer a 500
// with its text, which is what a failing check is.

// livez has requests for the health of the process fail while check does.
type livez struct {
	authorizer.Authorizer
	check func() error
}

// newLivez takes nil for an authorizer that allows everything, as the server does.
func newLivez(inner authorizer.Authorizer, check func() error) authorizer.Authorizer {
	if inner == nil {
		inner = authorizerfactory.NewAlwaysAllowAuthorizer()
	}
	return &livez{inner, check}
}

// Authorize implements [authorizer.Authorizer].
func (l *livez) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if !a.IsResourceRequest() && (a.GetPath() == "/livez" || a.GetPath() == "/healthz") {
		if err := l.check(); err != nil {
			return authorizer.DecisionDeny, "", err
		}
	}
	return l.Authorizer.Authorize(ctx, a)
}

// ConditionsAwareAuthorize implements [authorizer.Authorizer].
func (l *livez) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(l.Authorize(ctx, a))
}
