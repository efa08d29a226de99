// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"
)

// authenticate returns the user of a request. If an authenticator fails, the credentials are invalid, unless the API server
// could not be asked.
func (h *handler) authenticate(request *http.Request) (user.Info, error) {
	response, ok, err := h.Authenticator.AuthenticateRequest(request)
	switch {
	case err != nil && unanswered(err):
		return nil, fmt.Errorf("authenticate: %w", err)
	case err != nil || !ok:
		klog.FromContext(request.Context()).V(4).Info("Authentication failed", "path", request.URL.Path, "err", err)
		return nil, refusalOf(apierrors.NewUnauthorized("Unauthorized: send the bearer token of a user or a service account of the hub"))
	default:
		return response.User, nil
	}
}

// unanswered reports whether the error means that the API server could not be reached or failed.
func unanswered(err error) bool {
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		for _, one := range several.Errors() {
			if unanswered(one) {
				return true
			}
		}
		return false
	}
	var status apierrors.APIStatus
	var transport *url.Error
	return errors.As(err, &status) || errors.As(err, &transport) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// authorize returns an error unless the user may use the verb on the Placement.
func (h *handler) authorize(ctx context.Context, who user.Info, verb string, key types.NamespacedName) error {
	decision, reason, err := h.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: verb, Namespace: key.Namespace, Name: key.Name, ResourceRequest: true,
		APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return fmt.Errorf("authorize: %w", err)
	}
	denied := fmt.Errorf("user %q cannot %s resource %q in API group %q in the namespace %q",
		who.GetName(), verb, resource.Resource, resource.Group, key.Namespace)
	if reason != "" {
		denied = fmt.Errorf("%w: %s", denied, reason)
	}
	return refusalOf(apierrors.NewForbidden(resource.GroupResource(), key.Name, denied))
}
