// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

// Oldest is the first version of Kubernetes that serves resource.k8s.io/v1.
var Oldest = version.MajorMinor(1, 34)

const (
	// askInterval is the time between requests to an API server that does not answer. sayInterval is the time between log messages
	// about it.
	askInterval = time.Second
	sayInterval = 30 * time.Second
)

// Version returns the minor version of Kubernetes that an API server offers. If the API server emulates a version, Version
// returns the emulated one.
func Version(ctx context.Context, client discovery.ServerVersionInterfaceWithContext) (*version.Version, error) {
	info, err := client.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, err
	}
	text := info.GitVersion
	if info.EmulationMajor != "" && info.EmulationMinor != "" {
		text = info.EmulationMajor + "." + info.EmulationMinor
	}
	// Cloud providers append suffixes to versions: v1.34.2-gke.100, v1.35.1-eks-1234.
	offered, err := version.ParseGeneric(text)
	if err != nil {
		return nil, &unreadableError{text, err}
	}
	return version.MajorMinor(offered.Major(), offered.Minor()), nil
}

// Await is [Version] for a starting program. It repeats the request until the API server answers or ctx ends. It fails at once if
// the API server denies access, or if the version can't be parsed.
func Await(ctx context.Context, client discovery.ServerVersionInterfaceWithContext) (*version.Version, error) {
	var said time.Time
	for {
		offered, err := Version(ctx, client)
		if err == nil {
			return offered, nil
		}
		if unreadable := (&unreadableError{}); errors.As(err, &unreadable) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return nil, fmt.Errorf("ask the API server for its version: %w", err)
		}
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
		if time.Since(said) >= sayInterval {
			said = time.Now()
			klog.FromContext(ctx).Info("Waiting for the version of the API server", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(askInterval):
		}
	}
}

// unreadableError means that the API server responded with something other than a version.
type unreadableError struct {
	text string
	err  error
}

func (e *unreadableError) Error() string {
	return fmt.Sprintf("the API server has an invalid version %q: %v", e.text, e.err)
}

func (e *unreadableError) Unwrap() error { return e.err }

// Check returns an error if the version that an API server offers is too old.
func Check(offered *version.Version) error {
	if offered.LessThan(Oldest) {
		return fmt.Errorf("the API server offers Kubernetes %s: update the cluster to %s or newer, because celset needs resource.k8s.io/v1", offered, Oldest)
	}
	return nil
}
