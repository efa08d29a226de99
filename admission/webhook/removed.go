// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

const (
	// listTimeout is the maximum time for listing classes, and again for listing claims and templates, while the API server
	// waits.
	listTimeout = 300 * time.Millisecond
	// maxListed is the maximum number of listed claims, and of listed templates.
	maxListed = 500
	// maxNamed is the maximum number of claims and templates that a warning names.
	maxNamed = 5
)

// classValidator is the webhook for classes. It also warns if an update removes a constraint that claims or templates use.
type classValidator struct {
	validator[*resourceapi.DeviceClass]
	live client.Reader
}

func (v classValidator) ValidateUpdate(ctx context.Context, old, class *resourceapi.DeviceClass) (ctrladmission.Warnings, error) {
	warnings, err := v.validator.ValidateUpdate(ctx, old, class)
	if removed := removedFrom(old, class); err == nil && len(removed) > 0 {
		warnings = append(warnings, v.removed(ctx, class.Name, removed)...)
	}
	return warnings, err
}

// removedFrom returns the names of the constraints that the old version of a class defines, but the new version does not.
func removedFrom(old, class *resourceapi.DeviceClass) []string {
	before, _ := v1alpha1.ClassDefinitions(old)
	after, _ := v1alpha1.ClassDefinitions(class)
	var names []string
	for _, definition := range before {
		if !slices.ContainsFunc(after, func(d v1alpha1.Definition) bool { return d.Name == definition.Name }) {
			names = append(names, definition.Name)
		}
	}
	return names
}

// removed returns a warning for each removed constraint that is in use, with the names of the claims and templates that use it.
// It ignores claims or templates that can't be listed.
func (v classValidator) removed(ctx context.Context, class string, names []string) []string {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	users := map[string][]string{}
	add := func(carrier v1alpha1.Carrier) {
		for _, name := range carrier.LooksUp(class) {
			users[name] = append(users[name], carrier.Object.String())
		}
	}
	var templates resourceapi.ResourceClaimTemplateList
	var claims resourceapi.ResourceClaimList
	if v.live.List(ctx, &templates, client.Limit(maxListed)) == nil {
		for i := range templates.Items {
			add(v1alpha1.TemplateCarrier(&templates.Items[i]))
		}
	}
	if v.live.List(ctx, &claims, client.Limit(maxListed)) == nil {
		for i := range claims.Items {
			if claims.Items[i].Status.Allocation == nil {
				add(v1alpha1.ClaimCarrier(&claims.Items[i]))
			}
		}
	}
	atLeast := ""
	if templates.Continue != "" || claims.Continue != "" {
		atLeast = "at least "
	}
	var result []string
	for _, name := range names {
		if by := users[name]; len(by) > 0 {
			result = append(result, fmt.Sprintf("spec.config: %s%d objects refer to constraint %s, which this update removes, and their pods will wait: %s; define the constraint again, or change these objects",
				atLeast, len(by), name, listed(by)))
		}
	}
	return result
}

// listed joins the first maxNamed names, and adds the number of further names.
func listed(all []string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}
