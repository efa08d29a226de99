// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

const (
	// AllowedFor is how long valid tokens and granted rights are cached.
	AllowedFor = time.Minute
	// deniedFor is how long denied rights are cached.
	deniedFor = 10 * time.Second
	// reviewTimeout is the time limit of a TokenReview.
	reviewTimeout = 10 * time.Second
)

// retries returns the delays between attempts to create a review, if the API server fails.
func retries() *wait.Backoff {
	return &wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4}
}

// access returns an authenticator and an authorizer that create reviews on the hub. They reject anonymous requests.
func access(config *rest.Config, client *http.Client) (authenticator.Request, authorizer.Authorizer, error) {
	tokens, tokensErr := authenticationv1.NewForConfigAndClient(config, client)
	rights, rightsErr := authorizationv1.NewForConfigAndClient(config, client)
	if err := errors.Join(tokensErr, rightsErr); err != nil {
		return nil, nil, err
	}
	authenticate, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                &apiserver.AnonymousAuthConfig{Enabled: false},
		TokenAccessReviewClient:  tokens,
		TokenAccessReviewTimeout: reviewTimeout,
		WebhookRetryBackoff:      retries(),
		CacheTTL:                 AllowedFor,
	}.New()
	if err != nil {
		return nil, nil, fmt.Errorf("authentication by TokenReview: %w", err)
	}
	authorize, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: rights,
		AllowCacheTTL:             AllowedFor,
		DenyCacheTTL:              deniedFor,
		WebhookRetryBackoff:       retries(),
	}.New()
	if err != nil {
		return nil, nil, fmt.Errorf("authorization by SubjectAccessReview: %w", err)
	}
	return authenticate, authorize, nil
}
