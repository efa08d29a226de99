// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cmd/kubectl-celset/gang"
)

// expressionError is a mistake in the expression of a case, in contrast to the value false or a failed evaluation.
type expressionError struct{ error }

func (e *expressionError) Unwrap() error { return e.error }

// overDevices returns a function that evaluates expressions over the devices, with the environment of constraints.
func (in *input) overDevices(devices []explain.Device, features structured.Features) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, expression string) (bool, error) {
		environment, err := device.NewEnvironment(cel.Config{})
		if err != nil {
			return false, err
		}
		compiled, err := environment.Compile(ctx, expression)
		if err != nil {
			return false, &expressionError{err}
		}
		set := make([]*device.Device, len(devices))
		for i, d := range devices {
			published := in.published(&d, features)
			if published == nil {
				return false, fmt.Errorf("no ResourceSlice has device %s of driver %s in pool %s", d.Device, d.Driver, d.Pool)
			}
			set[i] = device.New(d.Driver, published)
		}
		return compiled.Satisfied(ctx, set, nil)
	}
}

// published returns the device as the search sees it, or nil. The slices of the latest generation of a pool count.
func (in *input) published(d *explain.Device, features structured.Features) (found *resourceapi.Device) {
	var latest int64
	for _, slice := range in.state.Slices(features.DeviceTaints) {
		pool := &slice.Spec.Pool
		if slice.Spec.Driver != d.Driver || pool.Name != d.Pool || found != nil && pool.Generation <= latest {
			continue
		}
		for i := range slice.Spec.Devices {
			if slice.Spec.Devices[i].Name == d.Device {
				found, latest = &slice.Spec.Devices[i], pool.Generation
			}
		}
	}
	return found
}

// overNodes returns a function that evaluates expressions over the nodes of a group.
func overNodes(report *gang.Report) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, expression string) (bool, error) {
		ok, err := report.Satisfies(ctx, expression)
		if _, wrong := errors.AsType[*gang.ExpressionError](err); wrong {
			err = &expressionError{err}
		}
		return ok, err
	}
}

// overClusters returns a function that evaluates expressions over each of the clusters.
func (in *input) overClusters(clusters []string, now time.Time) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, expression string) (bool, error) {
		match, err := in.hub.Matcher(ctx, expression, now)
		if err != nil {
			return false, &expressionError{err}
		}
		for _, name := range clusters {
			ok, err := match(ctx, name)
			if err != nil {
				return false, fmt.Errorf("cluster %s: %w", name, err)
			}
			if !ok {
				return false, fmt.Errorf("false for cluster %s", name)
			}
		}
		return true, nil
	}
}
